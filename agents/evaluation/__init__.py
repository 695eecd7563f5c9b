"""The value of a policy from logged episodes of another one: estimators, intervals, and what the log cannot say."""
