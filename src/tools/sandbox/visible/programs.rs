//! Shows the directories in `PATH` that are inside hidden directories, along with their programs' toolchains.

use super::table::{PREFIX_PARTS, TOOLCHAINS};
use super::{SystemFacts, Visible, resolve_links};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of directories in `PATH` to examine.
const MAX_DIRECTORIES: usize = 256;
/// Maximum numbers of entries to examine, and of symlinks to follow, in each directory.
const MAX_ENTRIES: usize = 2_000;
const MAX_PROGRAMS: usize = 512;
/// Maximum number of installation prefixes that become visible because symlinks in `PATH` lead to them.
const MAX_PREFIXES: usize = 64;

impl Visible {
    /// Shows the programs that the user's shell would find.
    pub(super) fn programs(&mut self, machine: &SystemFacts<'_>) {
        let path = (machine.variable)("PATH").unwrap_or_default();
        let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
        let mut done = BTreeSet::new();
        for directory in directories.take(MAX_DIRECTORIES) {
            let Some(found) = resolve_links(&directory) else { continue };
            self.lead(found.links);
            if machine.roots.iter().any(|root| found.real.starts_with(root)) || !self.is_hidden(&found.real) {
                continue;
            }
            self.show(&found.real);
            self.show_prefix(&found.real, machine, &mut done);
            for program in symlink_targets(&found.real) {
                if done.len() < MAX_PREFIXES {
                    self.linked_program(&program, machine, &mut done);
                }
            }
        }
    }

    /// Shows the program to which a symlink leads, along with its toolchain.
    fn linked_program(&mut self, program: &Path, machine: &SystemFacts<'_>, done: &mut BTreeSet<PathBuf>) {
        let Some(found) = resolve_links(program) else { return };
        let is_program =
            std::fs::metadata(&found.real).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
        let is_seen = |visible: &Self| visible.shown.iter().any(|shown| found.real.starts_with(shown));
        if !is_program || !self.is_hidden(&found.real) || machine.roots.iter().any(|root| found.real.starts_with(root)) {
            return;
        }
        if !is_seen(self)
            && let Some(directory) = found.real.parent()
        {
            self.show_prefix(directory, machine, done);
        }
        if !is_seen(self) {
            done.insert(found.real.clone());
            self.show(&found.real);
        }
        self.lead(found.links);
    }

    /// Shows the files that the programs in a directory need: those of a known toolchain or, failing that, of the
    /// prefix that contains the `bin` directory.
    fn show_prefix(&mut self, directory: &Path, machine: &SystemFacts<'_>, done: &mut BTreeSet<PathBuf>) {
        let homes = std::iter::once(machine.home).chain(machine.homes.iter().map(PathBuf::as_path));
        let home = homes.filter(|home| home.parent().is_some()).find(|home| directory.starts_with(home));
        if let Some(home) = home {
            let known = TOOLCHAINS
                .iter()
                .filter(|toolchain| !toolchain.at_home.is_empty() && directory.starts_with(home.join(toolchain.at_home)));
            let known: Vec<_> = known.collect();
            for toolchain in &known {
                self.toolchain(toolchain, &home.join(toolchain.at_home));
            }
            if !known.is_empty() {
                return;
            }
        }
        let is_bin = directory.file_name().is_some_and(|name| name == "bin" || name == "sbin");
        let Some(prefix) = directory.parent().filter(|_| is_bin) else { return };
        if !self.can_show(prefix) || !done.insert(prefix.to_owned()) {
            return;
        }
        // A dot directory with a `bin` also contains settings and keys, and `/` may contain anything.
        let names = home.and_then(|home| prefix.strip_prefix(home).ok()).unwrap_or(prefix).components();
        let is_private = names.into_iter().any(|name| name.as_os_str().as_encoded_bytes().starts_with(b"."));
        if is_private || prefix.components().count() <= 2 {
            for part in PREFIX_PARTS {
                self.show(&prefix.join(part));
            }
        } else {
            self.show(prefix);
        }
    }
}

/// Returns the symlinks in a directory.
fn symlink_targets(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.take(MAX_PROGRAMS).map(|entry| entry.path()).collect()
}
