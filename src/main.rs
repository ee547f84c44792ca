//! The binary: starts the library, and knows the commit it was built from.

/// Only this file is compiled again when there is a new commit.
const COMMIT: Option<aye::Commit> = aye::commit_in(include_bytes!(env!("AYE_COMMIT_FILE")));

fn main() -> std::process::ExitCode {
    aye::main(COMMIT)
}
