"""A plugin that imports a missing module."""

import a_driver_that_is_not_there
