//! The workspace: its files, symbols and git repository, and the installed toolchains.

pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod identity;
pub(crate) mod symbol_scan;
pub(crate) mod symbols;
pub(crate) mod toolchain;
pub(crate) mod worktree;
