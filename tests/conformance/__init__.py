"""Cases as data: allowed texts, rejected texts, and refused constraints with their errors."""
