"""Inner views of a join-aggregate block are chosen by hypergraph, variable orders, view trees and recursion."""
