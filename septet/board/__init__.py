"""The rules of the board: which work orders begin next, and which would wait for ever."""
