"""Imports what is not installed."""

import a_driver_that_is_not_there
