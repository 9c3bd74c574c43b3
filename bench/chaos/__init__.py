"""The chaos program: work orders under a hand that kills, and what git, forge and system say of them."""
