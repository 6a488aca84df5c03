"""How drafts become output tokens; knows no random numbers and no test."""
