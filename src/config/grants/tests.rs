use super::*;
use crate::config::ConfigError;
use crate::protocol::CommandRule;
use std::os::unix::fs::{PermissionsExt, symlink};

const DAY: &str = "allowed by you on 2026-11-21";
const DEFAULT: &str = include_str!("../../../assets/policy/default.toml");

fn command(words: &[&str]) -> GrantRule {
    GrantRule::Command(CommandRule::exact(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn write(path: &str) -> GrantRule {
    GrantRule::Write { paths: vec![path.to_owned()] }
}

fn add(text: &str, rules: &[GrantRule]) -> EditedRules {
    add_rules(text, rules, DAY, None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn line(text: &str, number: usize) -> &str {
    text.lines().nth(number - 1).unwrap_or_default()
}

#[test]
fn rules_are_added_next_to_rules_of_the_same_kind_and_nothing_else_changes() {
    let new = add(DEFAULT, &[command(&["cargo", "clippy"])]);
    assert_eq!(line(&new.text, new.line), "[[capabilities.\"Shell.Exec\".rules]]");
    assert_eq!(line(&new.text, new.line + 1), "command = [\"cargo\", \"clippy\"]");
    assert_eq!(line(&new.text, new.line - 1), "", "a blank line stands before it");
    let rest: String = new.text.replacen(
        "\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"cargo\", \"clippy\"]\nexact = true\ndecision = \"allow\"\nreason = \"allowed by you on 2026-11-21\"\n",
        "",
        1,
    );
    assert_eq!(rest, DEFAULT);
}

#[test]
fn rules_are_added_to_an_empty_policy_with_their_tables() {
    let new = add("schema_version = 1\n", &[command(&["cargo", "clippy"]), write("src/a.rs")]);
    assert_eq!(
        new.text,
        "schema_version = 1\n\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"cargo\", \"clippy\"]\nexact = true\n\
         decision = \"allow\"\nreason = \"allowed by you on 2026-11-21\"\n\n[[capabilities.\"File.Write\".rules]]\n\
         paths = [\"src/a.rs\"]\ndecision = \"allow\"\nreason = \"allowed by you on 2026-11-21\"\n"
    );
    assert_eq!(new.line, 3);
}

#[test]
fn a_rule_for_a_back_end_tool_names_exactly_this_tool_and_its_definition() {
    let rule = GrantRule::BackendTool { name: "find_customer".to_owned(), fingerprint: "f1".to_owned() };
    let new = add("schema_version = 1\n", std::slice::from_ref(&rule));
    assert_eq!(
        new.text,
        "schema_version = 1\n\n[[capabilities.\"BackendTool.Invoke\".rules]]\ntools = [\"find_customer\"]\nfingerprint = \"f1\"\n\
         decision = \"allow\"\nreason = \"allowed by you on 2026-11-21\"\n"
    );
    assert_eq!(list(&new.text).unwrap().into_iter().map(|saved| saved.rule).collect::<Vec<_>>(), [rule]);
    let (left, removed) = remove_rules(&new.text, |_| true).unwrap();
    assert!(removed.len() == 1 && !left.contains("find_customer"), "{left}");
}

#[test]
fn saving_a_rule_again_updates_its_expiry_without_a_duplicate() {
    let once = add("schema_version = 1\n", &[command(&["a"]), command(&["b"])]);
    assert_eq!(add(&once.text, &[command(&["b"])]).text, once.text);
    let end = "2026-11-22T10:00:00Z".parse().unwrap();
    let ended = add_rules(&once.text, &[command(&["b"])], DAY, Some(end)).unwrap();
    assert_eq!(list(&ended.text).unwrap().iter().map(|kept| kept.expires_at).collect::<Vec<_>>(), [None, Some(end)]);
    assert!(ended.text.contains("expires_at = 2026-11-22T10:00:00Z\n"), "{}", ended.text);
    let for_good = add_rules(&ended.text, &[command(&["b"])], DAY, None).unwrap();
    assert_eq!(for_good.text, once.text);
}

#[test]
fn rules_can_be_added_in_every_toml_notation() {
    for text in [
        "schema_version = 1\n[capabilities]\n\"Shell.Exec\" = { requires_approval = true }\n",
        "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrules = [{ command = [\"x\"], decision = \"ask\" }]\n",
        "schema_version = 1\ncapabilities.\"Shell.Exec\".requires_approval = true\n",
        "schema_version = 1\n[capabilities.\"Shell.Exec\"]\n# kept\nrequires_approval = true\n\n[approval] # kept\n",
        "schema_version = 1 # no newline at the end",
    ] {
        let new = add(text, &[command(&["cargo", "a \"b\" \\ ü\t"])]);
        let kept = list(&new.text).unwrap();
        assert_eq!(kept.len(), 1, "{}", new.text);
        assert_eq!((kept[0].line, &kept[0].rule), (new.line, &command(&["cargo", "a \"b\" \\ ü\t"])), "{}", new.text);
        assert_eq!(new.text.matches("# kept").count(), text.matches("# kept").count());
        let (back, gone) = remove_rules(&new.text, |kept| kept.line == new.line).unwrap();
        assert_eq!((gone.len(), list(&back).unwrap().len()), (1, 0), "{back}");
    }
}

#[test]
fn line_endings_and_the_byte_order_mark_are_preserved() {
    let text = "\u{feff}schema_version = 1\r\n# a\r\n[capabilities.\"Shell.Exec\"]\r\nrequires_approval = true\r\n";
    let new = add(text, &[command(&["a"])]);
    assert!(new.text.starts_with(text), "{:?}", new.text);
    assert_eq!(new.text.matches('\n').count(), new.text.matches("\r\n").count());
    assert_eq!(remove_rules(&new.text, |kept| kept.line == new.line).unwrap().0, text);
}

#[test]
fn mixed_line_endings_are_preserved() {
    let text = "schema_version = 1\r\n# a\n\n[capabilities.\"Shell.Exec\"]\r\n  requires_approval  =  true # b\n# c";
    let new = add(text, &[command(&["a"])]);
    let rest = "\n# c";
    assert!(new.text.starts_with(text.strip_suffix(rest).unwrap()), "{:?}", new.text);
    assert!(new.text.ends_with("# c"), "{:?}", new.text);
    assert_eq!(remove_rules(&new.text, |kept| kept.line == new.line).unwrap().0, text);
}

#[test]
fn removing_a_rule_changes_nothing_else() {
    let text = add(DEFAULT, &[command(&["a"]), command(&["b"]), write("x")]).text;
    let lines: Vec<_> = list(&text).unwrap().iter().filter(|kept| kept.saved_on().is_some()).map(|kept| kept.line).collect();
    assert_eq!(lines.len(), 3);
    let (middle, gone) = remove_rules(&text, |kept| kept.line == lines[1]).unwrap();
    assert_eq!(gone.len(), 1);
    assert_eq!(list(&middle).unwrap().iter().filter(|kept| kept.saved_on().is_some()).count(), 2);
    let (none, _) = remove_rules(&text, |kept| lines.contains(&kept.line)).unwrap();
    assert_eq!(none, DEFAULT);
}

#[test]
fn rules_with_other_settings_are_not_treated_as_saved_rules() {
    let text = "schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"a\"]\ndecision = \"allow\"\nargs = \"any\"\n\
                [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"a\", [\"b\", \"c\"]]\ndecision = \"allow\"\n\
                [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"a\"]\ndecision = \"deny\"\n";
    assert_eq!(list(text).unwrap(), []);
    assert!(add_rules("x = ", &[command(&["a"])], DAY, None).is_err());
    assert!(add_rules("capabilities = 1", &[command(&["a"])], DAY, None).is_err());
}

fn readable(path: &str) -> GrantRule {
    GrantRule::Readable { path: path.to_owned() }
}

#[test]
fn readable_directories_are_added_to_the_list_and_removed_individually() {
    let new = add("schema_version = 1\n", &[readable("/home/me/notes"), readable("/home/me/a \"b\"")]);
    assert_eq!(
        new.text,
        "schema_version = 1\n\n[capabilities.\"Shell.Exec\"]\nreadable_paths = [\n    # allowed by you on 2026-11-21\n    \"/home/me/notes\",\n    \
         # allowed by you on 2026-11-21\n    '/home/me/a \"b\"',\n]\n"
    );
    assert_eq!(new.line, 6);
    let kept = list(&new.text).unwrap();
    let said: Vec<_> = kept.iter().map(|kept| (kept.line, kept.rule.clone(), kept.saved_on())).collect();
    let day = Some("2026-11-21");
    assert_eq!(said, [(6, readable("/home/me/notes"), day), (8, readable("/home/me/a \"b\""), day)]);
    assert_eq!(add(&new.text, &[readable("/home/me/notes")]).text, new.text, "it is there once");
    let (rest, gone) = remove_rules(&new.text, |kept| kept.rule == readable("/home/me/notes")).unwrap();
    assert_eq!((gone.len(), list(&rest).unwrap().len()), (1, 1), "{rest}");
    let (none, _) = remove_rules(&new.text, |_| true).unwrap();
    assert!(!none.contains("readable_paths"), "{none}");
    let end = Some("2026-11-22T10:00:00Z".parse().unwrap());
    assert!(add_rules("schema_version = 1\n", &[readable("/a")], DAY, end).is_err());
    assert!(add_rules(&new.text, &[readable("/home/me/notes")], DAY, end).is_err());
}

#[test]
fn an_existing_list_of_readable_directories_keeps_its_comments_and_order() {
    for (text, written) in [
        (
            "schema_version = 1\n# top\n[capabilities.\"Shell.Exec\"] # head\nreadable_paths = [\"/a\", \"/b\"] # end\n# below\n",
            2,
        ),
        (
            "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nreadable_paths = [\n  \"/a\", # first\n  # about b\n  \"/b\" # second\n]\n\
             [[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"x\"]\ndecision = \"allow\"\n",
            3,
        ),
        ("schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]] # rule\ncommand = [\"x\"]\ndecision = \"allow\"\n", 1),
        ("schema_version = 1\n[capabilities.\"Shell.Exec\"]\nreadable_paths = [\n  \"/a\", # first\n  # last\n]\n", 1),
        ("schema_version = 1\n[capabilities]\n\"Shell.Exec\" = { readable_paths = [\"/a\"] }\n", 1),
        ("schema_version = 1\ncapabilities.\"Shell.Exec\".readable_paths = []\n", 0),
    ] {
        let new = add(text, &[readable("/new")]);
        let kept = list(&new.text).unwrap();
        assert_eq!(kept.len(), written + 1, "{}", new.text);
        assert_eq!(line(&new.text, new.line).trim(), "\"/new\",", "{}", new.text);
        crate::policy::Bundle::parse_rules(&new.text, "policy.toml").unwrap_or_else(|error| panic!("{error}\n{}", new.text));
        for comment in text.match_indices('#').map(|(at, _)| text[at..].lines().next().unwrap().trim()) {
            assert!(new.text.contains(comment), "{comment} in {}", new.text);
        }
        let (back, gone) = remove_rules(&new.text, |kept| kept.rule == readable("/new")).unwrap();
        assert_eq!((gone.len(), list(&back).unwrap().len()), (1, written), "{back}");
        for comment in text.match_indices('#').map(|(at, _)| text[at..].lines().next().unwrap().trim()) {
            assert!(back.contains(comment), "{comment} in {back}");
        }
    }
}

fn save(path: &Path, rule: &GrantRule) -> Result<usize, ConfigError> {
    change(path, |old| {
        let new = add_rules(old.unwrap_or("schema_version = 1\n"), std::slice::from_ref(rule), DAY, None)
            .map_err(ConfigError::single)?;
        Ok((new.text, new.line))
    })
}

#[test]
fn grant_files_are_private_and_replaced_atomically() {
    let root = tempfile::tempdir().unwrap();
    let path = project_file(&root.path().join("config"), Path::new("/home/me/greeter"));
    assert_eq!(save(&path, &command(&["a"])).unwrap(), 3);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    save(&path, &command(&["b"])).unwrap();
    assert_eq!(list(&read(&path).unwrap().unwrap()).unwrap().len(), 2);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    note_directory(&path, Path::new("/home/me/greeter")).unwrap();
    assert_eq!(project_files(&root.path().join("config")), [(path, Some("/home/me/greeter".to_owned()))]);
}

#[test]
fn a_symlinked_policy_is_changed_at_its_target() {
    let root = tempfile::tempdir().unwrap();
    let (real, link) = (root.path().join("dotfiles.toml"), root.path().join("policy.toml"));
    std::fs::write(&real, "schema_version = 1\n").unwrap();
    symlink(&real, &link).unwrap();
    save(&link, &command(&["a"])).unwrap();
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("command"));
    let dangling = root.path().join("dangling.toml");
    symlink(root.path().join("later.toml"), &dangling).unwrap();
    save(&dangling, &command(&["a"])).unwrap();
    assert!(dangling.is_symlink() && root.path().join("later.toml").is_file());
}

#[test]
fn unreadable_or_invalid_policies_are_left_unchanged() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("policy.toml");
    std::fs::create_dir(&path).unwrap();
    assert!(save(&path, &command(&["a"])).unwrap_err().to_string().contains("is not a regular file"));
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, b"\xff").unwrap();
    assert!(save(&path, &command(&["a"])).unwrap_err().to_string().contains("not UTF-8"));
    std::fs::write(&path, "broken = ").unwrap();
    assert!(save(&path, &command(&["a"])).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "broken = ");
}

#[test]
fn concurrent_changes_by_other_programs_are_not_lost() {
    let root = tempfile::tempdir().unwrap();
    for start in [None, Some("schema_version = 1\n")] {
        let path = root.path().join(start.map_or("new.toml", |_| "old.toml"));
        if let Some(text) = start {
            std::fs::write(&path, text).unwrap();
        }
        let mut others = vec!["schema_version = 1\n# by another\n", "schema_version = 1\n# by a third\n"];
        change(&path, |old| {
            let new =
                add_rules(old.unwrap_or("schema_version = 1\n"), &[command(&["a"])], DAY, None).map_err(ConfigError::single)?;
            if let Some(text) = others.pop() {
                std::fs::write(&path, text).unwrap();
            }
            Ok((new.text, ()))
        })
        .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("# by another") && text.contains("command = [\"a\"]"), "{text}");
    }
}

#[test]
fn rules_saved_concurrently_are_all_stored() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("policy.toml");
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (root, path) = (root.path(), &path);
            scope.spawn(move || {
                let _held = lock(root).unwrap();
                save(path, &command(&["a", &number.to_string()])).unwrap();
            });
        }
    });
    assert_eq!(list(&read(&path).unwrap().unwrap()).unwrap().len(), 20);
    let held = lock(root.path()).unwrap();
    let error = lock(root.path()).unwrap_err().to_string();
    assert!(error.contains("locked by another aye process; try again"), "{error}");
    drop(held);
    std::fs::remove_file(root.path().join("grants.lock")).unwrap();
    symlink("/etc/hostname", root.path().join("grants.lock")).unwrap();
    assert!(lock(root.path()).is_err(), "a link in place of the lock is not followed");
}

#[test]
fn sandboxed_and_commit_rules_are_saved_with_examples_and_recognized() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let copy = CommandRule { sandboxed: true, ..CommandRule::with_prefix(words(&["python", "-m", "pytest"])) };
    let commits = CommandRule { message: true, ..CommandRule::with_prefix(words(&["git", "commit"])) };
    let rules = [GrantRule::Command(copy), GrantRule::Command(commits)];
    let new = add("schema_version = 1\n", &rules);
    assert_eq!(
        new.text,
        "schema_version = 1\n\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"python\", \"-m\", \"pytest\"]\n\
         sandboxed = true\ndecision = \"allow\"\nreason = \"allowed by you on 2026-11-21\"\nmatch = [\"python -m pytest\"]\n\
         not_match = [\"python -c x\"]\n\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"git\", \"commit\"]\n\
         args = \"message\"\ndecision = \"allow\"\nreason = \"allowed by you on 2026-11-21\"\nmatch = [\"git commit -m x\"]\n\
         not_match = [\"git commit --no-verify -m x\", \"git commit --amend -m x\"]\n"
    );
    let kept: Vec<GrantRule> = list(&new.text).unwrap().into_iter().map(|kept| kept.rule).collect();
    assert_eq!(kept, rules);
    crate::policy::Bundle::parse_rules(&new.text, "policy.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(add(&new.text, &rules).text, new.text);
}
