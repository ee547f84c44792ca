//! The `aye` binary, which passes the commit that it was built from to the library.

/// Commit that aye was built from. It is defined in the binary so that a new commit recompiles only this file.
const COMMIT: Option<aye::Commit> = aye::parse_commit(include_bytes!(env!("AYE_COMMIT_FILE")));

fn main() -> std::process::ExitCode {
    aye::main(COMMIT)
}
