"""What all workflows share: stubs of activities, time-outs, inputs, search attributes, failures."""
