"""Masks: values of some columns that are replaced before anything is landed."""
