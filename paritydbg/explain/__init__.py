"""Says why a finding is one and what to write instead; it decides no verdict."""
