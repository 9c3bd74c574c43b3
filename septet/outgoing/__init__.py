"""Clean agents' texts for a forge: remove invisible text, and text that would act in the worker's name."""
