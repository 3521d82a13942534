"""Every call that fails, one after the other: what becomes of a program with stock and with pinbuddy."""
