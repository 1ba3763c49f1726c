# Written by tools/faces.py from the `__all__` of the modules.

from .classification import accuracy_score as accuracy_score
from .classification import confusion_matrix as confusion_matrix
from .classification import f1_score as f1_score
from .classification import precision_score as precision_score
from .classification import recall_score as recall_score
from .classification import top_k_accuracy_score as top_k_accuracy_score
from .ranking import average_precision_score as average_precision_score
from .ranking import precision_recall_curve as precision_recall_curve
from .ranking import roc_auc_score as roc_auc_score
from .ranking import roc_curve as roc_curve
from .regression import mean_absolute_error as mean_absolute_error
from .regression import mean_squared_error as mean_squared_error
from .regression import r2_score as r2_score
