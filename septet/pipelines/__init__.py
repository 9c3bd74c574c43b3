"""The decisions and the files of a pipeline, without Temporal."""
