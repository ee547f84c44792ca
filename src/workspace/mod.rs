//! The workspace: files, symbols, the git repository, and installed toolchains.

pub mod files;
pub mod git;
pub mod identity;
pub mod symbol_scan;
pub mod symbols;
pub mod toolchain;
pub mod worktree;
