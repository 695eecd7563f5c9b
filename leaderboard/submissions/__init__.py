"""Submissions: records and policies in one file, and what a reader who trusts nobody makes of them."""
