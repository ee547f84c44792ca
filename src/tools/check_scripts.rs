//! Reads the scripts that a goal's check runs, to find the files that the check may read.

use super::settings::ToolSettings;
use crate::protocol::path_words;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// How many times files mentioned by a script are read in turn.
const LEVELS: usize = 2;
/// Maximum number of files to read.
const FILES: usize = 20;
/// Maximum number of words for which a file is looked up.
const WORDS: usize = 2_000;
/// Maximum size of a file, in bytes.
const FILE_BYTES: u64 = 64 << 10;

/// Returns the content of the workspace files that a command mentions, and of those that these files mention.
pub(super) fn read_scripts(command: &str, settings: &ToolSettings) -> String {
    let Ok(workspace) = settings.workspace.canonicalize() else { return String::new() };
    let may_read = |path: &Path| (settings.paths.may_read)(path);
    read_within(command, &workspace, &may_read)
}

fn read_within(command: &str, workspace: &Path, may_read: &dyn Fn(&Path) -> bool) -> String {
    let (mut seen, mut found, mut words) = (HashSet::new(), String::new(), 0);
    let mut level = vec![(command.to_owned(), workspace.to_owned())];
    for _ in 0..LEVELS {
        let mut next = Vec::new();
        for (text, folder) in &level {
            for word in path_words(text) {
                words += 1;
                if words > WORDS || seen.len() >= FILES {
                    return found;
                }
                let candidates = [workspace.join(word), folder.join(word)];
                let real = candidates.iter().find_map(|path| script(path, workspace)).filter(|real| may_read(real));
                let Some(real) = real.filter(|real| seen.insert(real.clone())) else { continue };
                let content = crate::sys::file::read(&real, FILE_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                let Some(content) = content else { continue };
                found.push('\n');
                found.push_str(&content);
                next.push((content, real.parent().map_or_else(|| workspace.to_owned(), Path::to_owned)));
            }
        }
        level = next;
    }
    found
}

/// Returns the real path of a file in the workspace, or `None` if there is no such file.
fn script(path: &Path, workspace: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    (real.starts_with(workspace) && real.is_file()).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn scripts_of_a_check_are_read_two_levels_deep_and_only_in_the_workspace() {
        let root = tempfile::TempDir::new().unwrap();
        let root = root.path().canonicalize().unwrap();
        let workspace = root.join("w");
        fs::create_dir_all(workspace.join("ci")).unwrap();
        fs::write(root.join("outside.sh"), "secret").unwrap();
        fs::write(workspace.join("ci/check.sh"), "one; . \"$(dirname \"$0\")/helper.sh\"; sh ../outside.sh").unwrap();
        fs::write(workspace.join("ci/helper.sh"), "two; sh ci/third.sh; sh ci/check.sh").unwrap();
        fs::write(workspace.join("ci/third.sh"), "three").unwrap();
        let found = read_within("sh ci/check.sh", &workspace, &|_| true);
        assert!(found.contains("one") && found.contains("two"), "{found}");
        assert!(!found.contains("three") && !found.contains("secret"), "{found}");
        assert_eq!(found.matches("one").count(), 1);
        assert_eq!(read_within("sh ci/check.sh", &workspace, &|_| false), "");
    }
}
