//! Files, environment and their order; what a person set.
