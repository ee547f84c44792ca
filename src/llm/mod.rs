//! Providers, and how each says what the agent means.
