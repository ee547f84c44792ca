//! The workspace: files, symbols, the git repository, and installed toolchains.

pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod symbol_scan;
pub(crate) mod symbols;
pub(crate) mod toolchain;
pub(crate) mod worktree;
