//! The turn machine, its host, and what a session is.
