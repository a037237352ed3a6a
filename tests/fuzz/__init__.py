"""Long random searches for wrong answers, crashes and broken limits (`make fuzz`)."""
