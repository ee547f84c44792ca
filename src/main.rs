//! Binary of aye, which passes its commit to the library.

/// Commit of the build. Only this file is recompiled for a new commit.
const COMMIT: Option<aye::Commit> = aye::parse_commit(include_bytes!(env!("AYE_COMMIT_FILE")));

fn main() -> std::process::ExitCode {
    aye::main(COMMIT)
}
