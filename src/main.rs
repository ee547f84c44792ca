//! The binary: starts the library.

fn main() -> std::process::ExitCode {
    aye::main()
}
