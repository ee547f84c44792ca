//! Operands that the programs in a command line read. Symlinks at these paths are checked before the line runs.

use super::effect::find_places;
use super::path_words::{as_path, path_part};
use super::shell::option_verdict::OptionVerdict;
use super::shell::options::check_options;
use super::shell::{Arg, Invocation, read};

/// Maximum number of operands in a line. Lines with more operands are not analysed.
const MAX: usize = 4_000;

/// A path passed to a program in a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// Path relative to the directory in which the line runs. A leading `~` is present only if the shell would expand
    /// it.
    pub path: String,
    pub is_glob: bool,
    pub follows: Follows,
}

/// Symlinks that a program follows, in addition to those in the operand's own path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    Nothing,
    /// Symlinks among the entries of the directory.
    Entries,
    /// Symlinks anywhere in the tree.
    Tree,
    /// Symlinks anywhere in the tree, if the program is configured to follow them.
    TreeIfConfigured,
}

/// A program without an option table, and the options that make it follow symlinks in a tree.
struct Follower {
    program: &'static str,
    letters: &'static str,
    long: &'static [&'static str],
    /// Whether the first argument may be a cluster of option letters without a dash.
    bare_letters: bool,
}

const PLAIN: Follower = Follower { program: "", letters: "L", long: &["--dereference"], bare_letters: false };
const FOLLOWERS: &[Follower] = &[
    Follower { program: "du", ..PLAIN },
    Follower { program: "cp", ..PLAIN },
    Follower { program: "tar", letters: "h", bare_letters: true, ..PLAIN },
    Follower { program: "rsync", letters: "Lk", long: &["--copy-links", "--copy-unsafe-links", "--copy-dirlinks"], ..PLAIN },
    Follower { program: "tree", letters: "l", long: &[], ..PLAIN },
    Follower { program: "fd", long: &["--follow"], ..PLAIN },
    Follower { program: "fdfind", long: &["--follow"], ..PLAIN },
    Follower { program: "ag", letters: "f", long: &["--follow"], ..PLAIN },
    Follower { program: "chmod", ..PLAIN },
    Follower { program: "chown", ..PLAIN },
    Follower { program: "chgrp", ..PLAIN },
];
/// Options whose value is a file that contains file names.
const NAME_LISTS: &[&str] = &["--files0-from", "--files-from"];
/// Options of search programs whose value is a file that the program reads but does not search.
const FILE_OPTIONS: &[&str] = &["--file", "--exclude-from", "--ignore-file"];

/// Returns the operands that can be determined from the words of a command line.
///
/// # Errors
/// Returns an error if the line reads file names from a file, or if some file names are known only at run time.
pub fn operands(line: &str) -> Result<Vec<Operand>, String> {
    let mut all = Vec::new();
    for part in read(line).parts {
        for invocation in &part.invocations {
            add_operands(invocation, &mut all)?;
        }
        for redirect in &part.redirects {
            let target = redirect.target.as_ref().ok_or("redirects to a file whose name is known only at run time")?;
            all.push(Operand { path: as_path(target), is_glob: target.glob, follows: Follows::Nothing });
        }
        if all.len() > MAX {
            return Err(format!("the command names more than {MAX} files"));
        }
    }
    Ok(all)
}

fn add_operands(invocation: &Invocation, all: &mut Vec<Operand>) -> Result<(), String> {
    let argv = &invocation.argv;
    let program = invocation.base();
    let words = &argv[1..];
    if let Some(list) = words.iter().find(|word| is_list_option(program, &word.text)) {
        return Err(format!("`{program}` reads file names from another file (`{}`)", list.text));
    }
    if words.iter().any(|word| !word.is_known()) {
        return Err(format!("an argument of `{program}` is known only at run time"));
    }
    let follows = follows(program, words);
    let read = check_options(argv);
    let texts: Vec<&str> = match &read {
        OptionVerdict::Reads { paths } => paths.clone(),
        OptionVerdict::MayDoMore { .. } | OptionVerdict::NoTable => words.iter().map(|word| path_part(&word.text)).collect(),
    };
    let before = all.len();
    for text in texts.into_iter().filter(|text| !text.is_empty() && *text != "-") {
        // Several words may end with this text. If any of them is a glob or has a tilde, the operand does too.
        let of_text = |word: &&Arg| word.text.ends_with(text);
        let is_glob = words.iter().filter(of_text).any(|word| word.glob);
        let tilde = words.iter().filter(of_text).any(|word| word.tilde && word.text == text);
        let path = as_path(&Arg { tilde, ..Arg::plain(text) });
        all.push(Operand { path, is_glob, follows });
    }
    if follows != Follows::Nothing && (all.len() == before || searches_working_directory(program, words)) {
        all.push(Operand { path: ".".to_owned(), is_glob: false, follows });
    }
    Ok(())
}

/// Returns whether a program may search the working directory even though the command line contains words that look
/// like paths. Those words may be option values, such as a file of patterns or ignore rules.
fn searches_working_directory(program: &str, words: &[Arg]) -> bool {
    match program {
        "grep" | "egrep" | "fgrep" | "rg" => words.iter().any(|word| has_file_value(&word.text)),
        "find" => find_places(words).is_empty(),
        "du" => !words.iter().enumerate().any(|(index, word)| {
            let previous = index.checked_sub(1).map_or("", |index| words[index].text.as_str());
            !word.text.starts_with('-') && !may_take_value(previous)
        }),
        // These programs have no option table, so option values cannot be distinguished from paths.
        "tree" | "fd" | "fdfind" | "ag" => true,
        _ => false,
    }
}

/// Returns whether an option of `du` may take the next word as its value.
fn may_take_value(word: &str) -> bool {
    const FLAGS: &str = "0abcDHhklLmPSsx";
    word.starts_with('-') && !(is_cluster(word) && word[1..].chars().all(|letter| FLAGS.contains(letter)))
}

/// Returns whether an option of a search program takes a file as its value, in any spelling or abbreviation.
fn has_file_value(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    is_cluster(word) && word.contains('f')
        || name.len() > 2 && FILE_OPTIONS.iter().any(|option| option.starts_with(name) || name.starts_with(option))
}

fn is_list_option(program: &str, word: &str) -> bool {
    let short = |letter: char| is_cluster(word) && word.contains(letter);
    NAME_LISTS.iter().any(|list| word.strip_prefix(list).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
        || program == "tar" && short('T')
}

fn is_cluster(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.starts_with("--")
}

/// Returns the symlinks that a program follows, based on its options. Letters in option values are treated as options
/// too, so more symlinks than necessary may be checked.
fn follows(program: &str, words: &[Arg]) -> Follows {
    let has = |letter: char, long: &str| {
        words.iter().any(|word| is_cluster(&word.text) && word.text[1..].contains(letter) || word.text == long)
    };
    let tree = |follows: bool| if follows { Follows::Tree } else { Follows::Nothing };
    match program {
        "ls" | "dir" | "vdir" if has('L', "--dereference") => {
            if has('R', "--recursive") {
                Follows::Tree
            } else {
                Follows::Entries
            }
        }
        "grep" | "egrep" | "fgrep" => tree(has('R', "--dereference-recursive")),
        "find" => tree(words.iter().any(|word| matches!(word.text.as_str(), "-L" | "-follow"))),
        "rg" if has('L', "--follow") => Follows::Tree,
        "rg" => tree_if_configured(words),
        // `zip` follows symlinks unless an option turns that off.
        "zip" => tree(!has('y', "--symlinks")),
        _ => tree(FOLLOWERS.iter().filter(|one| one.program == program).any(|one| {
            let letters = one.letters.chars().any(|letter| has(letter, ""));
            let bare = one.bare_letters
                && words
                    .first()
                    .is_some_and(|word| !word.text.starts_with('-') && word.text.contains(|l| one.letters.contains(l)));
            letters || bare || words.iter().any(|word| one.long.contains(&word.text.as_str()))
        })),
    }
}

fn tree_if_configured(words: &[Arg]) -> Follows {
    if words.iter().any(|word| word.text == "--no-config") { Follows::Nothing } else { Follows::TreeIfConfigured }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe_operands(line: &str) -> Result<String, String> {
        let one = |operand: Operand| {
            let glob = if operand.is_glob { "*" } else { "" };
            let follows = match operand.follows {
                Follows::Nothing => "",
                Follows::Entries => "+entries",
                Follows::Tree => "+tree",
                Follows::TreeIfConfigured => "+tree?",
            };
            format!("{}{glob}{follows}", operand.path)
        };
        Ok(operands(line)?.into_iter().map(one).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn operands_are_the_files_of_a_command_and_the_links_it_follows() {
        for (line, expected) in [
            ("cat a b/c", "a b/c"),
            ("cat - a", "a"),
            ("cat l*/x '*'", "l*/x* *"),
            ("head -n 3 < a", "a"),
            ("ls", ""),
            ("ls -L", ".+entries"),
            ("ls -L d", "d+entries"),
            ("ls -LR d", "d+tree"),
            ("ls --dereference --recursive", ".+tree"),
            ("grep x a", "a"),
            ("grep -r x d", "d"),
            ("grep -R x d", "d+tree"),
            ("grep -nR x", ".+tree"),
            ("grep -R -f pats", "pats+tree .+tree"),
            ("grep -R --exclude-from=pats x", "pats+tree .+tree"),
            ("grep -R --exclude-from pats x", "pats+tree .+tree"),
            ("grep -R --exclude-f=pats x", "pats+tree x+tree .+tree"),
            ("grep -R --fil=pats", "pats+tree .+tree"),
            ("rg -L --ignore-file=ig x", "ig+tree .+tree"),
            ("rg -L --ignore-file ig x", "ig+tree .+tree"),
            ("grep --dereference-recursive x d e", "d+tree e+tree"),
            ("rg x d", "d+tree?"),
            ("rg --no-config x d", "d"),
            ("rg -L x", ".+tree"),
            ("rg --follow x d", "d+tree"),
            ("find d -name a", "d"),
            ("find -L d", "d+tree"),
            ("find . -follow", ".+tree"),
            ("find -L -newer a", "a+tree .+tree"),
            ("find -L \\( -newer a \\)", "a+tree .+tree"),
            ("echo hi a*", "a**"),
            ("[ -f a/b ]", "a/b"),
            ("test a -nt b", "a b"),
            ("cat '~' ~/x", "./~ ~/x"),
            ("du -L d", "d+tree"),
            ("du -Lh d", "d+tree"),
            ("du -L -X d", "d+tree .+tree"),
            ("fd -L a", "a+tree .+tree"),
            ("du -h d", "d"),
            ("cp -rL a b", "a+tree b+tree"),
            ("cp --from=x a b", "x a b"),
            ("tar chf o.tar d", "chf+tree o.tar+tree d+tree"),
            ("tar -czhf o.tar d", "o.tar+tree d+tree"),
            ("tar -czf o.tar d", "o.tar d"),
            ("git diff -- a", "a"),
            ("ls a && cat b | wc -l < c", "a c b"),
            ("true", ""),
        ] {
            let expected: String = expected.to_owned();
            let mut told: Vec<String> =
                describe_operands(line).unwrap_or_else(|why| panic!("{line}: {why}")).split(' ').map(str::to_owned).collect();
            let mut expected: Vec<String> = expected.split(' ').map(str::to_owned).collect();
            told.sort();
            expected.sort();
            assert_eq!(told, expected, "{line}");
        }
    }

    #[test]
    fn operands_from_files_or_expansions_are_unknown() {
        for line in [
            "wc --files0-from=names",
            "du --files0-from names",
            "tar -cf o -T names",
            "cat $(make)",
            "cat $X",
            "cat < $X",
            "ls `x`",
        ] {
            assert!(operands(line).is_err(), "{line}");
        }
    }
}
