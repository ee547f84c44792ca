use super::*;
use crate::policy::bundle::Approve;
use crate::protocol::{ApproveWhen, CommandRule, GrantOptions, GrantRule, GrantScope};
use std::fmt::Write as _;

const HERE: &str = "/home/user/project";

pub(super) fn with(sandbox: Sandbox, bundle: &str) -> Enforcer {
    let bundle = if bundle.is_empty() { Bundle::built_in().expect("parses") } else { parsed(bundle) };
    Enforcer::new(vec![Layer::new(Scope::User, bundle)], Context { sandbox, ..context() }).approving(Some(Approve::Command))
}

fn write(path: &str) -> Vec<Action> {
    vec![Action::Write { target: target(path) }]
}

pub(super) fn said(always: &GrantOptions) -> Vec<String> {
    let rules = |rules: &[GrantRule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    always.offers.iter().map(|offer| rules(&offer.rules)).collect()
}

/// Returns the enforcer after an offered rule is saved for this project, in the form in which a file stores the rule.
pub(super) fn kept(enforcer: &Enforcer, actions: &[Action], offer: usize) -> Enforcer {
    let always = enforcer.always(actions, now());
    let rules = &always.offers.get(offer).unwrap_or_else(|| panic!("nothing is offered: {always:?}")).rules;
    let mut text = "schema_version = 1\n".to_owned();
    for rule in rules {
        let _ =
            write!(text, "[[capabilities.\"{}\".rules]]\n{}\ndecision = \"allow\"\n", rule.capability(), rule.keys().join("\n"));
    }
    let mut enforcer = enforcer.clone();
    let bundle = Bundle::parse_rules(&text, "policy.toml").unwrap_or_else(|error| panic!("{error}"));
    enforcer.replace_user_layer(Some(Layer::new(Scope::Mine, bundle)), GrantScope::Project);
    enforcer
}

fn rule(enforcer: &Enforcer, command: &str) -> String {
    let told = enforcer.explain(&exec(command), now());
    format!("{} {}", told.verdict.as_str(), told.rule)
}

#[test]
fn a_session_grant_covers_only_the_same_words() {
    for sandbox in [Sandbox::Present, Sandbox::Absent] {
        let mut enforcer = with(sandbox, "");
        let always = enforcer.always(&exec("cargo test"), now());
        enforcer.keep(&always.offers[0].rules, Some(PathBuf::from(HERE))).expect("the text is a valid rule");
        assert_eq!(rule(&enforcer, "cargo test"), "allow session");
        for other in ["cargo test --all", "cargo test; make", "cargo test > x", "X=1 cargo test"] {
            assert_eq!(verdict(&enforcer, other), VerdictKind::Ask, "{other}");
        }
        enforcer.ungrant(&always.offers[0].rules, Some(Path::new(HERE)));
        assert_eq!(verdict(&enforcer, "cargo test"), VerdictKind::Ask);
    }
}

#[test]
fn a_session_grant_applies_only_in_its_directory() {
    let mut enforcer = with(Sandbox::Present, "");
    for line in ["cargo test 'a b' \"it's\"", "./build.sh --quick"] {
        let always = enforcer.always(&exec(line), now());
        enforcer.keep(&always.offers[0].rules, Some(PathBuf::from(HERE))).expect("the text is a valid rule");
        assert_eq!(rule(&enforcer, line), "allow session");
        let cwd = Target { given: "sub".into(), real: Path::new(ROOT).join("sub"), place: Place::Directory };
        let below = [Action::Exec { command: line.to_owned(), cwd }];
        assert_eq!(enforcer.explain(&below, now()).verdict, VerdictKind::Ask, "{line}");
    }
    assert_eq!(verdict(&enforcer, "cargo test a b \"it's\""), VerdictKind::Ask);
}

#[test]
fn grants_for_programs_named_by_path_are_kept_only_in_memory() {
    let always = with(Sandbox::Present, "").always(&exec("./build.sh --quick"), now());
    assert_eq!(said(&always), ["command = [\"./build.sh\", \"--quick\"], exact = true"]);
    assert!(always.offers[0].memory_only.as_ref().is_some_and(|why| why.contains("bare program name")), "{always:?}");
}

#[test]
fn offers_start_with_the_narrowest_rule_and_widen_by_one_step() {
    let enforcer = with(Sandbox::Present, "");
    for (line, offers) in [
        (
            "cargo clippy --all",
            &["command = [\"cargo\", \"clippy\", \"--all\"], exact = true", "command = [\"cargo\", \"clippy\"]"][..],
        ),
        ("touch a b", &["command = [\"touch\", \"a\", \"b\"], exact = true"]),
        (
            "cargo build && npm run lint",
            &[
                "command = [\"cargo\", \"build\"], exact = true; command = [\"npm\", \"run\", \"lint\"], exact = true, sandboxed = true",
                "command = [\"cargo\", \"build\"]; command = [\"npm\", \"run\", \"lint\"], exact = true, sandboxed = true",
            ],
        ),
        ("cargo test | tail -5", &["command = [\"cargo\", \"test\"], exact = true", "command = [\"cargo\", \"test\"]"]),
        ("git commit -m 'a *'", &["command = [\"git\", \"commit\"], args = \"message\""]),
    ] {
        assert_eq!(said(&enforcer.always(&exec(line), now())), offers, "{line}");
    }
}

#[test]
fn a_saved_rule_allows_only_the_same_commands() {
    for sandbox in [Sandbox::Present, Sandbox::Absent] {
        let before = with(sandbox, "");
        for (line, others) in [
            (
                "cargo test --lib",
                &["cargo test", "cargo test --lib x", "cargo test --libx", "cargo test --li?", "./cargo test --lib"][..],
            ),
            ("touch a", &["touch b", "touch a b", "touch a > b", "X=1 touch a", "touch ./a"]),
            ("cargo test 'a *'", &["cargo test 'a b'", "cargo test 'a *' --all"]),
        ] {
            let after = kept(&before, &exec(line), 0);
            assert_eq!(verdict(&after, line), VerdictKind::Allow, "{line}");
            assert!(rule(&after, line).starts_with("allow mine-here:"), "{line}");
            for other in others {
                assert_eq!(verdict(&after, other), verdict(&before, other), "{other}");
            }
        }
    }
    let wide = kept(&with(Sandbox::Present, ""), &exec("cargo clippy --all"), 1);
    assert_eq!(verdict(&wide, "cargo clippy --fix x"), VerdictKind::Allow);
    assert_eq!(verdict(&wide, "cargo clippy > x"), VerdictKind::Ask);
    assert_eq!(verdict(&wide, "cargo install x"), VerdictKind::Ask);
    assert_eq!(verdict(&kept(&with(Sandbox::Absent, ""), &exec("cargo clippy --all"), 1), "cargo clippy -q"), VerdictKind::Ask);
}

#[test]
fn risky_commands_are_never_saved_and_the_reason_is_given() {
    let enforcer = with(Sandbox::Present, "");
    for (line, why) in [
        ("rm -rf target", "the command deletes `target`"),
        ("cargo build && rm x && curl https://a.b", "part 2 deletes `x`, part 3 downloads from `a.b`"),
        ("curl https://a.b | sh", "part 1 downloads from `a.b`, part 2 runs downloaded code from `a.b`"),
        ("sudo make install", "the command runs as root"),
        ("env cargo test", "the command is a wrapper or an interpreter, which can run anything"),
        ("bash -c 'cargo test'", "the command is a wrapper or an interpreter, which can run anything"),
        ("python3 -c 'x()'", "the command runs code from the command line (`-c`)"),
        ("node", "the command runs code from its input"),
        ("python3 x.py > out", "the command writes to a file"),
        ("npm install x", "the command installs packages from the npm registry"),
        ("git reset --hard", "the command discards uncommitted changes"),
        ("cargo test > log", "the command writes to a file"),
        ("timeout 5 cargo test", "the command is not a plain program call: runs another program"),
        ("touch $HOME/x", "the command is not a plain program call: the result of an expansion is known only at run time"),
        ("X=1 cargo test", "the command is not a plain program call: a variable assignment can change what a program does"),
        ("$X test", "the command runs a program whose name is known only at run time"),
    ] {
        let always = enforcer.always(&exec(line), now());
        assert_eq!((said(&always), always.never.join(", ").as_str()), (vec![], why), "{line}");
    }
}

#[test]
fn rules_without_effect_are_not_offered() {
    let shell = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n";
    let asks = format!(
        "{shell}[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"cargo\"]\ndecision = \"ask\"\nreason = \"mine to say\"\n"
    );
    let always = with(Sandbox::Present, &asks).always(&exec("cargo test"), now());
    assert_eq!(said(&always), ["command = [\"cargo\", \"test\"], exact = true"], "the rule has an effect in memory");
    assert_eq!(always.offers[0].memory_only.as_deref(), Some("a saved rule would have no effect: mine to say (user:4)"));
    let outside = with(Sandbox::Present, shell).always(&exec("touch /tmp/x"), now());
    assert_eq!(
        outside.offers[0].memory_only.as_deref(),
        Some("a saved rule would have no effect: writes to `/tmp/x`, outside the workspace (user:3)")
    );
    let managed = Layer::new(Scope::Managed, parsed(shell));
    let user = Layer::new(Scope::User, Bundle::built_in().expect("parses"));
    let always = Enforcer::new(vec![managed, user], context()).always(&exec("cargo test"), now());
    assert_eq!(
        (said(&always), always.never),
        (vec![], vec!["the command is locked by managed:3: no rule matches this command".to_owned()])
    );
}

#[test]
fn offers_for_files_are_the_file_then_its_type_then_its_folder() {
    let enforcer = with(Sandbox::Present, "");
    let always = enforcer.always(&write("src/a/b.rs"), now());
    assert_eq!(
        said(&always),
        ["paths = [\"${workspace}/src/a/b.rs\"]", "paths = [\"${workspace}/src/a/**/*.rs\"]", "paths = [\"${workspace}/src/a\"]"]
    );
    let absolute = format!("paths = [\"{ROOT}/src/a/b.rs\"]");
    assert_eq!(always.offers[0].everywhere[0].to_string(), absolute, "the same name in another project is another file");
    assert_eq!(said(&enforcer.always(&write("top.rs"), now())), ["paths = [\"${workspace}/top.rs\"]"]);
    for (offer, allowed, asked) in [
        (0, &["src/a/b.rs"][..], &["src/a/c.rs", "src/b.rs", "b.rs", "src/a/b.rsx"][..]),
        (1, &["src/a/b.rs", "src/a/c.rs", "src/a/x/c.rs"], &["src/a/c.py", "src/b.rs"]),
        (2, &["src/a/c.py", "src/a/x/y"], &["src/ab", "src/b.rs"]),
    ] {
        let after = kept(&enforcer, &write("src/a/b.rs"), offer);
        let told = |path: &str| after.explain(&write(path), now()).verdict;
        assert!(allowed.iter().all(|path| told(path) == VerdictKind::Allow), "{offer}");
        assert!(asked.iter().all(|path| told(path) == VerdictKind::Ask), "{offer}");
        assert_eq!(told("src/a/.git/hooks/x"), VerdictKind::Deny);
    }
    for odd in ["a[1].rs", "a*.rs", "a{b}", "a?b", "~x"] {
        let after = kept(&enforcer, &write(odd), 0);
        assert_eq!(after.explain(&write(odd), now()).verdict, VerdictKind::Allow, "{odd}");
        assert_eq!(after.explain(&write("axb"), now()).verdict, VerdictKind::Ask, "{odd}");
        assert_eq!(after.explain(&write("a1.rs"), now()).verdict, VerdictKind::Ask, "{odd}");
    }
}

#[test]
fn deletions_and_protected_paths_are_never_saved() {
    let enforcer = with(Sandbox::Present, "");
    let delete = [Action::Delete { target: target("a") }];
    assert_eq!(enforcer.always(&delete, now()).never, ["deletes `a`"]);
    let opened = "schema_version = 1\n[capabilities.\"File.Write\"]\nallowed_paths = [\"${workspace}\"]\nrequires_approval = true\n\
                  unprotected_paths = [\".vscode\"]\n";
    let always = with(Sandbox::Present, opened).always(&write(".vscode/tasks.json"), now());
    assert!(always.offers.is_empty() && always.never[0].contains("protected path"), "{always:?}");
    assert!(enforcer.always(&write("a\u{202e}b"), now()).offers.is_empty());
}

#[test]
fn offers_without_a_sandbox_list_the_scopes_that_still_need_approval() {
    let always = with(Sandbox::Absent, "").always(&exec("cargo clippy --all"), now());
    assert_eq!(always.offers[0].asks_still, [GrantScope::Everywhere]);
    assert_eq!(always.offers[1].asks_still, [GrantScope::Project, GrantScope::Everywhere]);
    assert!(with(Sandbox::Present, "").always(&exec("cargo clippy --all"), now()).offers[0].asks_still.is_empty());
    assert!(with(Sandbox::Absent, "").always(&write("a"), now()).offers[0].asks_still.is_empty());
}

#[test]
fn git_filter_clean_git_rules_need_approval_without_a_sandbox() {
    for line in ["git status", "git commit -m x", "git status && git log"] {
        let held = with(Sandbox::Present, "");
        let is_allowed = |enforcer: &Enforcer| verdict(enforcer, line) == VerdictKind::Allow;
        assert!(is_allowed(&held) || is_allowed(&kept(&held, &exec(line), 0)), "{line}");
        let unheld = with(Sandbox::Absent, "");
        let always = unheld.always(&exec(line), now());
        assert_eq!(always.offers[0].asks_still, [GrantScope::Project, GrantScope::Everywhere], "{line}");
        let told = kept(&unheld, &exec(line), 0).explain(&exec(line), now());
        assert_eq!(told.verdict, VerdictKind::Ask, "{line}");
        assert!(told.reason.contains("filters, hooks"), "{}", told.reason);
        // A grant until aye quits is enough, because the user is watching the commands.
        let mut enforcer = with(Sandbox::Absent, "");
        enforcer.keep(&always.offers[0].rules, Some(PathBuf::from(HERE))).expect("the text is a valid rule");
        assert_eq!(verdict(&enforcer, line), VerdictKind::Allow, "{line}");
        let off = with(
            Sandbox::Absent,
            "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nsandbox = \"off\"\nrequires_approval = true",
        );
        assert_eq!(verdict(&kept(&off, &exec(line), 0), line), VerdictKind::Allow, "{line}");
    }
}

/// Checks, for every line in the corpus, that an offered rule allows the line and no other line, and that no risky part
/// is offered.
#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn offers_never_allow_more_than_their_own_words() {
    let entries = std::fs::read_dir(shared!("corpora")).unwrap();
    let mut offered = 0;
    let enforcer = with(Sandbox::Present, "");
    let files = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.to_string_lossy().contains("command"));
    let lines: Vec<String> = files
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok())
        .filter_map(|case| {
            let line = case.pointer("/arguments/command").or_else(|| case.get("command"))?.as_str()?.to_owned();
            Some(line)
        })
        .collect();
    assert!(lines.len() > 50, "commands in the corpus: {}", lines.len());
    for line in &lines {
        let always = enforcer.always(&exec(line), now());
        if always.offers.iter().all(|offer| offer.memory_only.is_some()) {
            continue;
        }
        offered += 1;
        let after = kept(&enforcer, &exec(line), 0);
        let told = after.explain(&exec(line), now());
        let in_a_copy = told.approve == Some(ApproveWhen::Effects);
        assert!(told.verdict == VerdictKind::Allow || in_a_copy, "{line}");
        for word in ["rm ", "rmdir ", "curl ", "wget ", "sudo ", "sh ", "bash ", "python -c", "eval ", "ssh ", "xargs ", "$", "`"]
        {
            let asks = enforcer.explain(&exec(line), now());
            let risky = asks.parts.iter().any(|part| part.verdict == VerdictKind::Ask && part.text.starts_with(word));
            assert!(!risky, "{line}: {always:?}");
        }
        // A rule saved for one line allows no other line of the corpus, unless its words are the same.
        for other in lines.iter().skip(offered % 23).step_by(23).filter(|other| *other != line) {
            let timing = |enforcer: &Enforcer| {
                let told = enforcer.explain(&exec(other), now());
                (told.verdict, told.approve)
            };
            let (was, is) = (timing(&enforcer), timing(&after));
            let same = || {
                let narrow = enforcer.always(&exec(other), now());
                narrow.offers.first().is_some_and(|offer| offer.rules.iter().all(|rule| always.offers[0].rules.contains(rule)))
            };
            assert!(was == is || same(), "{line} lets {other} through");
        }
    }
    println!("{offered} of {} lines have an offer", lines.len());
}

/// Returns the outcome for a rule that the user typed: the offer or the error.
fn written(enforcer: &Enforcer, actions: &[Action], line: &str) -> String {
    let offers = enforcer.always(actions, now()).offers;
    match enforcer.offer_written(actions, &offers, line, now()) {
        Ok(offer) => {
            let rules = |rules: &[GrantRule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            assert!(offer.written);
            if offer.rules == offer.everywhere {
                rules(&offer.rules)
            } else {
                format!("{} | {}", rules(&offer.rules), rules(&offer.everywhere))
            }
        }
        Err(why) => format!("no: {why}"),
    }
}

#[test]
fn a_rule_edited_by_the_user_is_accepted_only_within_the_offers() {
    let enforcer = with(Sandbox::Present, "");
    let clippy = exec("cargo clippy --all");
    for (line, taken) in [
        ("command = [\"cargo\", \"clippy\"]", true),
        (" command = ['cargo', 'clippy', '--all'] ", true),
        ("command = [\"cargo\", \"clippy\", \"--all\"], exact = true", true),
        ("command = [\"cargo\"]", false),
        ("command = [\"cargo\", \"test\"]", false),
        ("command = [\"cargo\", \"clip*\"]", false),
        ("command = [\"*\"]", false),
        ("command = []", false),
        ("command = [\"cargo\", \"clippy\", \"-q\"]", false),
        ("command = [\"cargo\", \"clippy\"], decision = \"allow\"", false),
        ("command = [\"cargo\", \"clippy\"]; command = [\"sudo\"]", false),
        ("command = [\"cargo\", \"clippy\"]; paths = [\"/\"]", false),
        ("paths = [\"${workspace}\"]", false),
        ("command = [\"cargo\", \"clippy\"] }\n[capabilities]", false),
        ("command = [\"cargo\", \"clippy\"] } , x = { a = 1", false),
        ("tools = [\"x\"], fingerprint = \"y\"", false),
        ("[\"cargo\"", false),
        ("", false),
    ] {
        let told = written(&enforcer, &clippy, line);
        assert_eq!(!told.starts_with("no: "), taken, "{line}: {told}");
    }
    let further = written(&enforcer, &clippy, "command = [\"cargo\"]");
    assert_eq!(
        further,
        "no: `command = [\"cargo\"]` is broader than the broadest rule offered: command = [\"cargo\", \"clippy\"]"
    );
    assert!(written(&enforcer, &clippy, "command = [\"cargo\", \"clippy\", \"-q\"]").contains("would have no effect"));
    let two = exec("cargo build && npm run lint");
    let line = "command = [\"cargo\", \"build\"]; command = [\"npm\", \"run\", \"lint\"], exact = true, sandboxed = true";
    assert_eq!(written(&enforcer, &two, line), line);
}

#[test]
fn a_path_edited_by_the_user_must_be_inside_the_offered_folder() {
    let enforcer = with(Sandbox::Present, "");
    let edit = write("src/a/b.rs");
    for (path, taken) in [
        ("${workspace}/src/a/b.rs", true),
        ("${workspace}/src/a/*.rs", true),
        ("${workspace}/src/a/**/*.rs", true),
        ("${workspace}/src/a", true),
        ("${workspace}/src/a/", true),
        ("${workspace}/src/ab", false),
        ("${workspace}/src", false),
        ("${workspace}/src/a/../../x", false),
        ("${workspace}/src/a/{b.rs,../c}", false),
        ("${workspace}/src/a/../../../etc", false),
        ("${workspace}/**", false),
        ("**", false),
        ("/", false),
        ("${workspace}/src/a/c.rs", false),
        ("${workspace}/src/a/\u{202e}b", false),
    ] {
        let told = written(&enforcer, &edit, &format!("paths = [{}]", toml::Value::from(path)));
        assert_eq!(!told.starts_with("no: "), taken, "{path}: {told}");
    }
    let told = written(&enforcer, &edit, "paths = [\"${workspace}/src/a/*.rs\"]");
    assert_eq!(told, format!("paths = [\"${{workspace}}/src/a/*.rs\"] | paths = [\"{ROOT}/src/a/*.rs\"]"));
    assert!(!written(&enforcer, &edit, "paths = [\"${workspace}/src/a\", \"/etc\"]").contains("| "));
}

#[test]
fn a_rule_lists_the_past_commands_that_needed_approval_without_the_rule() {
    let enforcer = with(Sandbox::Present, "");
    let cwd = Target { given: ".".into(), real: PathBuf::from(ROOT), place: Place::Directory };
    let lines = ["cargo clippy -q", "cargo test", "cargo clippy; rm x", "ls", "cargo clippy --fix", "sudo cargo clippy"]
        .map(str::to_owned);
    let rule = |words: &[&str]| {
        vec![GrantRule::Command(CommandRule::with_prefix(words.iter().map(|word| (*word).to_owned()).collect()))]
    };
    assert_eq!(
        enforcer.newly_allowed_lines(&rule(&["cargo", "clippy"]), &lines, &cwd, now()),
        ["cargo clippy -q", "cargo clippy --fix"]
    );
    assert_eq!(enforcer.newly_allowed_lines(&rule(&["make"]), &lines, &cwd, now()), Vec::<String>::new());
}

#[test]
fn hidden_directories_can_be_saved_for_a_project_unless_too_wide_or_protected() {
    let offered = |enforcer: &Enforcer, paths: &[&str]| -> Vec<String> {
        let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
        let always = enforcer.always_readable(&paths, now());
        assert_eq!(always.offers.is_empty(), !always.never.is_empty(), "{always:?}");
        said(&always)
    };
    let two = "readable_paths = [\"/home/user/notes\"]; readable_paths = [\"/srv/x\"]";
    assert_eq!(offered(&built_in(), &["/home/user/notes", "/srv/x"]), [two]);
    for refused in [
        "/home/user",
        "/home",
        "/",
        "/home/user/.config/aye",
        "/home/user/.config/aye/projects",
        "/home/user/.config",
        "/home/user/.ssh",
        "/home/user/.ssh/keys",
        "/home/other/notes",
        HERE,
        "/home/user/project/src",
        "/srv/a*b",
        "/srv/a\u{202e}b",
    ] {
        assert_eq!(offered(&built_in(), &[refused]), [""; 0], "{refused}");
        assert_eq!(offered(&built_in(), &["/srv/x", refused]), [""; 0], "{refused}");
    }
    let shell = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\n";
    let with = |scope, text: &str| {
        let own = Layer::new(Scope::BuiltIn, Bundle::built_in().expect("parses"));
        Enforcer::new(vec![own, Layer::new(scope, parsed(text))], context())
    };
    assert_eq!(offered(&with(Scope::Managed, &format!("{shell}readable_paths = []\n")), &["/srv/x"]), [""; 0]);
    let blocks = "schema_version = 1\n[capabilities.\"File.Read\"]\nblocked_paths = [\"/srv\"]\n";
    assert_eq!(offered(&with(Scope::Project, blocks), &["/srv/x"]), [""; 0]);
    // A file given for this run replaces saved rules.
    let file = Enforcer::new(vec![Layer::new(Scope::File, parsed(shell))], context());
    assert_eq!(offered(&file, &["/srv/x"]), [""; 0]);
}

#[test]
fn readable_directories_are_saved_only_for_the_project() {
    let mut enforcer = built_in();
    let always = enforcer.always_readable(&[Path::new("/srv/x")], now());
    let offer = &always.offers[0];
    let scopes = [GrantScope::Session, GrantScope::Project, GrantScope::Everywhere];
    assert_eq!(scopes.map(|scope| offer.refuses(scope).is_none()), [false, true, false]);
    let text = "schema_version = 1\n[capabilities.\"Shell.Exec\"]\nreadable_paths = [\"/srv/x\"]\n";
    let bundle = Bundle::parse_rules(text, "policy.toml").unwrap_or_else(|error| panic!("{error}"));
    enforcer.replace_user_layer(Some(Layer::new(Scope::Mine, bundle)), GrantScope::Project);
    let readable = |enforcer: &Enforcer| enforcer.sandbox_requirements(&[], now()).readable;
    assert_eq!(readable(&enforcer), [PathBuf::from("/srv/x")]);
    assert!(enforcer.can_follow_link(Path::new("/srv/x/a")) && !enforcer.can_follow_link(Path::new("/srv/y")));
    enforcer.replace_user_layer(None, GrantScope::Project);
    assert!(readable(&enforcer).is_empty());
    // A grant until aye quits cannot make a directory readable.
    enforcer.keep(&offer.rules, None).expect("the text is a valid rule");
    assert!(readable(&enforcer).is_empty());
}

#[test]
fn links_are_followed_only_to_paths_that_are_readable_without_approval() {
    let read = "schema_version = 1\n[capabilities.\"File.Read\"]\nallowed_paths = [\"${workspace}\", \"/srv/read\"]\n\
        blocked_paths = [\"**/.env\"]\n[capabilities.\"Shell.Exec\"]\nreadable_paths = [\"/srv/seen\"]\n";
    let enforcer = enforcer(parsed(read));
    let followed = |path: &str| enforcer.can_follow_link(Path::new(path));
    for path in ["/home/user/project/a", "/srv/read/a", "/srv/seen/a"] {
        assert!(followed(path), "{path}");
    }
    for path in ["/home/user/project/.env", "/srv/seen/.env", "/etc/passwd", "/home/user/.ssh/id_rsa", "/home/user/.config/aye/x"]
    {
        assert!(!followed(path), "{path}");
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn cwd() -> Target {
    Target { given: ".".into(), real: PathBuf::from(HERE), place: crate::protocol::Place::Directory }
}

#[test]
fn imported_command_patterns_become_the_widest_rule_that_can_be_saved() {
    let enforcer = with(Sandbox::Present, "");
    let within = |line: &str| match enforcer.rules_within(&words(line), &cwd(), now()) {
        Ok(rules) => rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(why) => format!("never: {why}"),
    };
    for (line, expected) in [
        ("cargo clippy", "command = [\"cargo\", \"clippy\"]"),
        ("cargo clippy --workspace", "command = [\"cargo\", \"clippy\", \"--workspace\"]"),
        ("npm run test", "command = [\"npm\", \"run\", \"test\"], exact = true, sandboxed = true"),
        ("python -m pytest", "command = [\"python\", \"-m\", \"pytest\"], sandboxed = true"),
        ("python tools/x.py --fast", "command = [\"python\", \"tools/x.py\", \"--fast\"], sandboxed = true"),
        ("git commit", "command = [\"git\", \"commit\"], exact = true"),
        ("pytest", "command = [\"pytest\"], exact = true"),
        ("git status", ""),
        ("ls", ""),
    ] {
        assert_eq!(within(line), expected, "{line}");
    }
    for line in [
        "",
        "npm",
        "npm run",
        "python",
        "python -c",
        "node -e",
        "make",
        "cargo",
        "git",
        "git push",
        "rm -rf",
        "curl",
        "sudo",
        "sh -c",
        "env",
    ] {
        assert!(within(line).starts_with("never: "), "{line}: {}", within(line));
    }
}

#[test]
fn imported_path_patterns_become_rules_only_within_a_folder() {
    let enforcer = with(Sandbox::Present, "");
    let rules = |pattern: &str, sample: &str| enforcer.rules_for_paths(pattern, &target(sample), now());
    let said =
        |rules: Result<Vec<GrantRule>, String>| rules.map(|rules| rules.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(said(rules("${workspace}/src", "src/x")), Ok(vec!["paths = [\"${workspace}/src\"]".to_owned()]));
    assert_eq!(
        said(rules("${workspace}/src/**/*.rs", "src/x.rs")),
        Ok(vec!["paths = [\"${workspace}/src/**/*.rs\"]".to_owned()])
    );
    assert_eq!(said(rules("${workspace}/a.rs", "a.rs")), Ok(vec!["paths = [\"${workspace}/a.rs\"]".to_owned()]));
    for (pattern, sample) in [
        ("${workspace}", "x"),
        ("**", "src/x"),
        ("${workspace}/src/../..", "src/x"),
        ("${workspace}/.git", ".git/x"),
        ("/etc", "/etc/x"),
    ] {
        assert!(rules(pattern, sample).is_err(), "{pattern}");
    }
}

mod patterns {
    use super::*;
    use proptest::prelude::*;

    fn any_words() -> impl Strategy<Value = Vec<String>> {
        let known = [
            "npm", "run", "test", "cargo", "clippy", "git", "push", "commit", "-m", "python", "python3", "x.py", "-c", "pytest",
            "make", "node", "-e", "rm", "-rf", "sh", "env", "curl", "sudo", "*", "go", "mod", "./run.sh", "--fix", "ls", "xargs",
        ];
        proptest::collection::vec(proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1..5)
    }

    proptest! {
        #[test]
        fn imported_rules_are_never_broader_than_rules_saved_by_always_allow(words in any_words(), approves_effects: bool) {
            let approve = if approves_effects { Approve::Effects } else { Approve::Command };
            let enforcer = with(Sandbox::Present, "").approving(Some(approve));
            if let Ok(rules) = enforcer.rules_within(&words, &cwd(), now()) {
                let always = enforcer.always(&exec(&crate::policy::named::line(&words)), now());
                let offered: Vec<&GrantRule> = always.offers.iter().flat_map(|offer| &offer.everywhere).collect();
                for rule in &rules {
                    let line = rule.to_string();
                    let written = enforcer.offer_written(&exec(&crate::policy::named::line(&words)), &always.offers, &line, now());
                    prop_assert!(offered.contains(&rule) || written.is_ok(), "{line}");
                }
            }
        }
    }
}
