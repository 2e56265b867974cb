"""The command line. Decides how commands read their arguments and how results are printed."""
