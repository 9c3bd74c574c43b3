"""The common parts of the programs around an agent: orders, users, limits, process trees and exit files."""
