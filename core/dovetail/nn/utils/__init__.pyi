# Written by tools/faces.py from the `__all__` of the modules.

from . import parametrizations as parametrizations
from . import parametrize as parametrize
from . import rnn as rnn
from ..clipping import clip_grad_norm_ as clip_grad_norm_
from ..clipping import clip_grad_value_ as clip_grad_value_
from ..clipping import clip_grads_with_norm_ as clip_grads_with_norm_
from ..clipping import get_total_norm as get_total_norm
from .older_norms import remove_spectral_norm as remove_spectral_norm
from .older_norms import remove_weight_norm as remove_weight_norm
from .parameter_functions import functional_call as functional_call
from .parameter_functions import parameters_to_vector as parameters_to_vector
from .parameter_functions import stack_module_state as stack_module_state
from .parameter_functions import vector_to_parameters as vector_to_parameters
from .parametrizations import spectral_norm as spectral_norm
from .parametrizations import weight_norm as weight_norm
