"""The input, the views, the decisions and the files of a pipeline, without Temporal."""
