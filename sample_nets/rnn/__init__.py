"""A classifier of sentences of unequal length: two-way LSTM, GRU, and a pooled head."""
