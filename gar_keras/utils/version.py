"""The version of the package, for its own records as well."""

__version__ = "0.1.0"
