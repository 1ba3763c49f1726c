"""The module `dt.random` under its public name; see `dovetail.functions.random`."""

import sys

from .functions import random
from .functions.random import *  # noqa: F403 - for type checkers

sys.modules[__name__] = random
