//! Option tables of programs that only read. They list the options with which a program remains read-only, and show
//! which arguments are paths.

use super::arg::Arg;
use super::builtins;
use super::option_verdict::OptionVerdict;

/// Options of one program. Long options are written as `name`, `name?` (with an optional `=value`), `name=` (with a
/// value) or `name=@` (with a path as its value).
struct OptionTable {
    program: &'static str,
    flags: &'static str,
    valued: &'static str,
    paths: &'static str,
    long: &'static str,
    /// Whether the program accepts a number as an option, such as `-5`.
    counts: bool,
    /// Options that specify the pattern. If none of them is given, the first operand is the pattern.
    pattern_unless: &'static [&'static str],
    /// Whether all options of the program are read-only. If set, it does no harm if the program interprets a file name
    /// as an option.
    harmless: bool,
}

const BARE: OptionTable =
    OptionTable { program: "", flags: "", valued: "", paths: "", long: "", counts: false, pattern_unless: &[], harmless: true };

const TABLES: &[OptionTable] = &[
    OptionTable {
        program: "ls",
        flags: "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        valued: "ITw",
        long: "all almost-all author escape block-size= ignore-backups color? directory dired classify? file-type format= \
               full-time group-directories-first no-group human-readable si dereference-command-line \
               dereference-command-line-symlink-to-dir hide= hyperlink? indicator-style= inode ignore= kibibytes dereference \
               numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size \
               sort= time= time-style= tabsize= width= context zero help version",
        ..BARE
    },
    OptionTable {
        program: "cat",
        flags: "AbeEnstTuv",
        long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version",
        ..BARE
    },
    OptionTable {
        program: "head",
        flags: "qvz",
        valued: "cn",
        long: "bytes= lines= quiet silent verbose zero-terminated help version",
        counts: true,
        ..BARE
    },
    OptionTable {
        program: "tail",
        flags: "fFqvz",
        valued: "cns",
        long: "bytes= lines= follow? quiet silent verbose zero-terminated sleep-interval= pid= retry max-unchanged-stats= help version",
        counts: true,
        ..BARE
    },
    OptionTable {
        program: "wc",
        flags: "clmLw",
        long: "bytes chars lines max-line-length words total= files0-from=@ help version",
        ..BARE
    },
    OptionTable { program: "pwd", flags: "LP", long: "logical physical help version", ..BARE },
    OptionTable {
        program: "grep",
        flags: "EFGPiyvwxcLloqshHnTZaIrRUbz",
        valued: "eABCmdD",
        paths: "f",
        long: "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file=@ ignore-case no-ignore-case invert-match \
               word-regexp line-regexp count color? colour? files-without-match files-with-matches max-count= only-matching quiet \
               silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null after-context= \
               before-context= context= group-separator= no-group-separator text binary-files= devices= directories= exclude= \
               exclude-from=@ exclude-dir= include= recursive dereference-recursive line-buffered binary null-data help version",
        counts: true,
        pattern_unless: &["-e", "-f", "--regexp", "--file"],
        ..BARE
    },
    OptionTable {
        program: "rg",
        flags: "abcFhHiIlLnNopPqsSuUvVwx0.",
        valued: "AABCdEeGgjmMrtT",
        paths: "f",
        long: "after-context= before-context= context= auto-hybrid-regex binary block-buffered byte-offset case-sensitive color= \
               colors= column context-separator= count count-matches crlf debug dfa-size-limit= encoding= engine= \
               field-context-separator= field-match-separator= file=@ files files-with-matches files-without-match fixed-strings \
               follow glob= glob-case-insensitive heading hidden iglob= ignore-case ignore-file=@ ignore-file-case-insensitive \
               include-zero invert-match json line-buffered line-number line-regexp max-columns= max-columns-preview max-count= \
               max-depth= max-filesize= mmap multiline multiline-dotall no-config no-filename no-heading no-hidden no-ignore \
               no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs \
               no-line-number no-messages no-mmap no-unicode no-column null null-data one-file-system only-matching \
               passthru path-separator= pcre2 pcre2-version pretty quiet regex-size-limit= regexp= replace= \
               smart-case sort= sortr= stats stop-on-nonmatch text threads= trace trim type= type-not= type-list unrestricted \
               vimgrep with-filename word-regexp help version",
        pattern_unless: &["-e", "-f", "--regexp", "--file", "--files", "--type-list"],
        harmless: false,
        ..BARE
    },
];

const DIFF: &str = "patch no-patch unified= raw patch-with-raw indent-heuristic no-indent-heuristic minimal patience histogram \
    anchored= diff-algorithm= stat? compact-summary numstat shortstat dirstat? cumulative summary patch-with-stat name-only \
    name-status color? no-color color-moved? no-color-moved color-moved-ws= word-diff? word-diff-regex= color-words? no-renames \
    rename-empty no-rename-empty check ws-error-highlight= full-index binary abbrev? break-rewrites? find-renames? find-copies? \
    find-copies-harder irreversible-delete diff-filter= find-object= pickaxe-all pickaxe-regex relative? no-relative text \
    ignore-cr-at-eol ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines inter-hunk-context= \
    function-context exit-code quiet no-ext-diff no-textconv ignore-submodules? output-indicator-new= output-indicator-old= output-indicator-context= src-prefix= dst-prefix= no-prefix \
    default-prefix line-prefix= ita-invisible-in-index submodule? cached staged merge-base base ours theirs";
const LOG: &str = "follow no-follow no-decorate decorate? decorate-refs= decorate-refs-exclude= source use-mailmap mailmap no-mailmap \
    full-diff log-size max-count= skip= since= after= until= before= author= committer= grep= all-match invert-grep \
    regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp merges no-merges min-parents= max-parents= \
    first-parent not all branches? tags? remotes? glob= exclude= reflog walk-reflogs merge boundary simplify-by-decoration \
    full-history dense sparse simplify-merges ancestry-path? date-order author-date-order topo-order reverse objects \
    no-walk? do-walk pretty? format= abbrev-commit no-abbrev-commit oneline encoding= expand-tabs? no-expand-tabs notes? \
    no-notes show-pulls relative-date date= parents children left-right graph no-graph show-linear-break? cherry-pick \
    cherry-mark cherry left-only right-only no-patch cc combined-all-paths diff-merges= no-diff-merges remerge-diff \
    since-as-filter= clear-decorations bisect";
const STATUS: &str = "short branch show-stash porcelain? long verbose untracked-files? ignore-submodules? ignored? column? no-column \
    ahead-behind no-ahead-behind renames no-renames find-renames? null";

/// Long git options whose value is never a path.
const GIT_TEXTS: &[&str] =
    &["grep", "author", "committer", "since", "until", "after", "before", "date", "format", "word-diff-regex"];

/// Checks a command against the option table of its program.
pub(crate) fn check_options(argv: &[Arg]) -> OptionVerdict<'_> {
    match argv[0].text.as_str() {
        "find" => find(&argv[1..]),
        "git" => git(&argv[1..]),
        name => match TABLES.iter().find(|table| table.program == name) {
            Some(table) => check_ordinary(table, &argv[1..]),
            None => builtins::builtin_verdict(argv).unwrap_or(OptionVerdict::NoTable),
        },
    }
}

fn check_ordinary<'a>(table: &OptionTable, args: &'a [Arg]) -> OptionVerdict<'a> {
    let mut paths = Vec::new();
    let (mut at, mut closed, mut pattern_given, mut operands) = (0, false, table.pattern_unless.is_empty(), Vec::new());
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        at += 1;
        if !closed && text == "--" {
            closed = true;
            continue;
        }
        if closed || text == "-" || !text.starts_with('-') {
            if !closed && !table.harmless && arg.glob && text.starts_with(['*', '?', '[']) {
                return OptionVerdict::MayDoMore { word: text };
            }
            operands.push(text);
            continue;
        }
        if arg.glob && !arg.quoted && !(table.harmless && globs_value(text)) {
            return OptionVerdict::MayDoMore { word: text };
        }
        let name = text.split('=').next().unwrap_or(text);
        pattern_given |= table.pattern_unless.contains(&name) || has_pattern_option(table, text);
        match option(table, text) {
            Some(OptionArguments::Alone) => {}
            Some(OptionArguments::Path(path)) => paths.push(path),
            Some(OptionArguments::Next) => {
                let dashed = |value: &Arg| value.text.starts_with('-') && !has_pattern_option(table, text);
                if !table.harmless && args.get(at).is_some_and(|value| value.glob || dashed(value)) {
                    return OptionVerdict::MayDoMore { word: &args[at].text };
                }
                at += 1;
            }
            Some(OptionArguments::NextPath) => {
                if let Some(value) = args.get(at).filter(|value| value.glob && !table.harmless) {
                    return OptionVerdict::MayDoMore { word: &value.text };
                }
                paths.extend(args.get(at).map(|arg| arg.text.as_str()));
                at += 1;
            }
            None => return OptionVerdict::MayDoMore { word: text },
        }
    }
    let from = usize::from(!pattern_given).min(operands.len());
    paths.extend_from_slice(&operands[from..]);
    OptionVerdict::Reads { paths }
}

/// Returns whether a glob occurs only in an option's value. Whichever files exist, `--include=*.rs` can only expand to
/// this option.
fn globs_value(text: &str) -> bool {
    text.starts_with("--") && text.find('=') < text.find(['*', '?', '[']) && text.contains('=')
}

/// Returns whether an option specifies the pattern, possibly within a cluster such as `-ne foo`.
fn has_pattern_option(table: &OptionTable, text: &str) -> bool {
    if table.pattern_unless.is_empty() || text.starts_with("--") {
        return table.pattern_unless.contains(&text);
    }
    let taken = |letter: &char| table.valued.contains(*letter) || table.paths.contains(*letter);
    text[1..].chars().find(taken).is_some_and(|letter| table.pattern_unless.iter().any(|known| known[1..].chars().eq([letter])))
}

/// Value that an option takes.
enum OptionArguments<'a> {
    Alone,
    Path(&'a str),
    Next,
    NextPath,
}

fn option<'a>(table: &OptionTable, text: &'a str) -> Option<OptionArguments<'a>> {
    if let Some(long) = text.strip_prefix("--") {
        return long_option(table.long, long);
    }
    if table.counts && text[1..].bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(OptionArguments::Alone);
    }
    for (index, letter) in text[1..].char_indices() {
        let rest = &text[1 + index + letter.len_utf8()..];
        if table.flags.contains(letter) {
            continue;
        }
        return match (table.valued.contains(letter), table.paths.contains(letter), rest.is_empty()) {
            (true, _, true) => Some(OptionArguments::Next),
            (true, _, false) => Some(OptionArguments::Alone),
            (_, true, true) => Some(OptionArguments::NextPath),
            (_, true, false) => Some(OptionArguments::Path(rest)),
            (false, false, _) => None,
        };
    }
    Some(OptionArguments::Alone)
}

fn long_option<'a>(known: &str, long: &'a str) -> Option<OptionArguments<'a>> {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    if name.is_empty() {
        return None;
    }
    known.split_ascii_whitespace().find_map(|entry| {
        let rest = entry.strip_prefix(name)?;
        match (rest, value) {
            ("", None) | ("?", _) | ("=", Some(_)) => Some(OptionArguments::Alone),
            ("=", None) => Some(OptionArguments::Next),
            ("=@", Some(path)) => Some(OptionArguments::Path(path)),
            ("=@", None) => Some(OptionArguments::NextPath),
            _ => None,
        }
    })
}

fn find(args: &[Arg]) -> OptionVerdict<'_> {
    let mut paths = Vec::new();
    let mut at = 0;
    let mut expression = false;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        at += 1;
        if arg.glob && (text.starts_with(['*', '?', '[']) || expression) {
            return OptionVerdict::MayDoMore { word: text };
        }
        if !expression && !text.starts_with('-') && !matches!(text, "(" | ")" | "!" | ",") {
            paths.push(text);
            continue;
        }
        if !expression && matches!(text, "-H" | "-L" | "-P" | "--") {
            continue;
        }
        expression = true;
        match text {
            "("
            | ")"
            | "!"
            | ","
            | "-not"
            | "-a"
            | "-and"
            | "-o"
            | "-or"
            | "-print"
            | "-print0"
            | "-ls"
            | "-prune"
            | "-quit"
            | "-depth"
            | "-d"
            | "-empty"
            | "-true"
            | "-false"
            | "-follow"
            | "-mount"
            | "-xdev"
            | "-noleaf"
            | "-daystart"
            | "-executable"
            | "-readable"
            | "-writable"
            | "-nouser"
            | "-nogroup"
            | "-warn"
            | "-nowarn"
            | "-ignore_readdir_race" => {}
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename" | "-regex" | "-iregex" | "-lname"
            | "-ilname" | "-type" | "-xtype" | "-size" | "-perm" | "-user" | "-group" | "-uid" | "-gid" | "-links" | "-inum"
            | "-maxdepth" | "-mindepth" | "-mtime" | "-mmin" | "-atime" | "-amin" | "-ctime" | "-cmin" | "-used"
            | "-regextype" | "-fstype" | "-printf" | "-newermt" | "-newerat" | "-newerct" => {
                if args.get(at).is_some_and(|value| value.glob) {
                    return OptionVerdict::MayDoMore { word: &args[at].text };
                }
                at += 1;
            }
            "-newer" | "-anewer" | "-cnewer" | "-samefile" => {
                paths.extend(args.get(at).map(|arg| arg.text.as_str()));
                at += 1;
            }
            _ => return OptionVerdict::MayDoMore { word: text },
        }
    }
    OptionVerdict::Reads { paths }
}

/// Returns the number of options that precede the subcommand without changing its meaning.
pub(crate) fn harmless_globals(args: &[Arg]) -> usize {
    let global = |arg: &&Arg| {
        matches!(
            arg.text.as_str(),
            "--no-pager"
                | "-P"
                | "--no-optional-locks"
                | "--no-replace-objects"
                | "--literal-pathspecs"
                | "--icase-pathspecs"
                | "--glob-pathspecs"
                | "--noglob-pathspecs"
        )
    };
    args.iter().take_while(global).count()
}

fn git(args: &[Arg]) -> OptionVerdict<'_> {
    let skipped = harmless_globals(args);
    let Some((command, rest)) = args[skipped..].split_first() else { return OptionVerdict::NoTable };
    let (long, flags, valued): (&[&str], &str, &str) = match command.text.as_str() {
        "status" => (&[STATUS], "sbvz", ""),
        "diff" => (&[DIFF], "pusRabwWz1230", "UGSlO"),
        "log" | "show" => (&[DIFF, LOG], "pusRabwWzcmtgiEFP", "UGSlnL"),
        _ => return OptionVerdict::MayDoMore { word: &command.text },
    };
    let mut paths = Vec::new();
    let (mut at, mut closed) = (0, false);
    while let Some(arg) = rest.get(at) {
        let text = arg.text.as_str();
        at += 1;
        if !closed && text == "--" {
            closed = true;
        } else if closed || !text.starts_with('-') {
            if !closed && (runs_signature_program(text) || arg.glob && text.starts_with(['*', '?', '['])) {
                return OptionVerdict::MayDoMore { word: text };
            }
            paths.push(text.split_once(':').filter(|(_, path)| path.contains("..")).map_or(text, |(_, path)| path));
        } else if runs_signature_program(text) || (arg.glob && !arg.quoted) {
            return OptionVerdict::MayDoMore { word: text };
        } else if let Some(name) = text.strip_prefix("--") {
            match long.iter().find_map(|known| long_option(known, name)) {
                Some(OptionArguments::Alone | OptionArguments::Path(_)) => {}
                Some(OptionArguments::Next | OptionArguments::NextPath) => {
                    if let Some(value) = rest.get(at) {
                        if runs_signature_program(&value.text) || value.text.starts_with('-') || value.glob {
                            return OptionVerdict::MayDoMore { word: &value.text };
                        }
                        if !GIT_TEXTS.contains(&name) {
                            paths.push(&value.text);
                        }
                    }
                    at += 1;
                }
                None => return OptionVerdict::MayDoMore { word: text },
            }
        } else {
            let before = at;
            if !git_short(text, flags, valued, &mut at) {
                return OptionVerdict::MayDoMore { word: text };
            }
            // Some versions use the next word as the value and some do not, so it must be harmless either way.
            for value in rest.get(before..at).unwrap_or_default() {
                if value.text.starts_with('-') || value.glob {
                    return OptionVerdict::MayDoMore { word: &value.text };
                }
                if !text.ends_with(['S', 'G']) {
                    paths.push(&value.text);
                }
            }
        }
    }
    OptionVerdict::Reads { paths }
}

/// Returns whether a format string makes git run the program that verifies signatures.
fn runs_signature_program(text: &str) -> bool {
    text.contains("%G") || text.contains("%(G")
}

fn git_short(text: &str, flags: &str, valued: &str, at: &mut usize) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > 1 && digits(&text[1..]) {
        return true;
    }
    for (index, letter) in text[1..].char_indices() {
        let rest = &text[1 + index + letter.len_utf8()..];
        match letter {
            // A similarity, a mode or a number that is attached to the option.
            'M' | 'C' | 'B' | 'X'
                if rest.trim_end_matches('%').bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b',') =>
            {
                return true;
            }
            'u' if matches!(rest, "no" | "normal" | "all") => return true,
            _ if flags.contains(letter) => {}
            _ if valued.contains(letter) && letter != 'O' => {
                *at += usize::from(rest.is_empty());
                return true;
            }
            _ => return false,
        }
    }
    text.len() > 1
}
