//! The command line, wiring, exit codes; decides nothing.
