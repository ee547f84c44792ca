//! Lets the user choose, in line mode, which hunks to apply. Hunks are shown one at a time.

use crate::host::console::print_text;
use crate::host::error::CliError;
use crate::host::tasks::TaskChanges;
use crate::protocol::{FileDiff, Problem};
use crate::text::clean;
use crate::tools::PolicyStamp;
use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;

/// Maximum size, in bytes, of a file whose hunks can be chosen.
const MAX_FILE_BYTES: u64 = 10 << 20;
const HELP: &str = "y - apply this hunk\nn - skip this hunk\na - apply this hunk and the rest of the file\n\
    d - skip this hunk and the rest of the file\nq - skip this hunk and everything after it\n? - show this help\n";

/// The user's answer for one hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    RestOfFile,
    SkipFile,
    Quit,
}

/// Restricts the changes to the hunks that the user chooses.
///
/// # Errors
/// Returns an error if a file changes while the user chooses, or if a file is larger than `MAX_FILE_BYTES`.
pub(super) fn choose(changes: &mut TaskChanges, workspace: &Path) -> Result<(), CliError> {
    let failed = |why: String| CliError::failed(Problem::new("cannot choose hunks").because(why));
    let stamp = PolicyStamp { hash: String::new(), name: String::new(), mode: String::new() };
    let Some(patch) = changes.patch(stamp).map_err(failed)? else { return Ok(()) };
    let mut input = std::io::stdin().lock();
    let mut chosen = BTreeSet::new();
    let mut has_quit = false;
    for file in patch.diffs().iter() {
        let Some(path) = &file.name else { continue };
        if has_quit {
            continue;
        }
        let hunks = ask_about_file(file, &mut input, &mut has_quit);
        // A change without lines counts as one hunk.
        let count = file.hunks.len().max(1);
        if hunks.len() == count {
            chosen.insert(path.clone());
        } else if !hunks.is_empty() {
            let base =
                crate::sys::file::read(&workspace.join(path), MAX_FILE_BYTES).map_err(|error| failed(error.to_string()))?;
            changes.collected.choose_hunks(path, &base, &hunks).map_err(failed)?;
            chosen.insert(path.clone());
        }
    }
    changes.collected.retain(|path| chosen.contains(path));
    Ok(())
}

/// Prompts for each hunk of a file. Returns the indexes of the hunks that the user chose.
fn ask_about_file(file: &FileDiff, input: &mut dyn BufRead, has_quit: &mut bool) -> BTreeSet<usize> {
    let mut title = file.clone();
    title.hunks.clear();
    print_text(&clean(&title.to_string()));
    let count = file.hunks.len().max(1);
    let mut chosen = BTreeSet::new();
    for number in 0..count {
        if let Some(hunk) = file.hunks.get(number) {
            print_text(&clean(&hunk.to_string()));
        }
        let what = if file.hunks.is_empty() { "this change" } else { "this hunk" };
        match ask(&format!("({}/{count}) Apply {what} [y,n,a,d,q,?]? ", number + 1), input) {
            Answer::Yes => {
                chosen.insert(number);
            }
            Answer::No => {}
            Answer::RestOfFile => {
                chosen.extend(number..count);
                break;
            }
            Answer::SkipFile => break,
            Answer::Quit => {
                *has_quit = true;
                break;
            }
        }
    }
    chosen
}

/// Repeats the prompt until the user enters a valid answer. The end of the input is treated as `q`.
fn ask(prompt: &str, input: &mut dyn BufRead) -> Answer {
    loop {
        print_text(prompt);
        let mut line = String::new();
        if !input.read_line(&mut line).is_ok_and(|count| count > 0) {
            print_text("\n");
            return Answer::Quit;
        }
        match line.trim() {
            "y" => return Answer::Yes,
            "n" => return Answer::No,
            "a" => return Answer::RestOfFile,
            "d" => return Answer::SkipFile,
            "q" => return Answer::Quit,
            _ => print_text(HELP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FileDiffs;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n@@ -20 +20 @@\n-e\n+f\n";

    #[test]
    fn each_input_line_answers_for_one_hunk_and_the_end_of_the_input_skips_the_rest() {
        let diffs = FileDiffs::read(DIFF);
        for (lines, chosen, quits) in [
            ("y\nn\ny\n", vec![0, 2], false),
            ("n\na\n", vec![1, 2], false),
            ("y\nd\n", vec![0], false),
            ("what\ny\nq\n", vec![0], true),
            ("y\n", vec![0], true),
            ("", vec![], true),
        ] {
            let mut has_quit = false;
            let hunks = ask_about_file(&diffs[0], &mut lines.as_bytes(), &mut has_quit);
            assert_eq!((hunks.into_iter().collect::<Vec<_>>(), has_quit), (chosen, quits), "{lines:?}");
        }
    }
}
