"""What the programs around an agent share: orders, users, limits, process trees and exit files."""
