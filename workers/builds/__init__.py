"""Which build runs which work: names of builds, patches, promotion, and the guard of workflow code."""
