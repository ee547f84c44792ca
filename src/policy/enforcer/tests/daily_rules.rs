//! Tests rules for everyday commands: interpreters and task runners in a copy of the workspace, commits, and command
//! lines that change directory.

use super::grants::{kept, said, with};
use super::*;
use crate::policy::bundle::Approve;

fn asks_about_every_command() -> Enforcer {
    with(Sandbox::Present, "")
}

/// Returns the verdict on a command line and when the line is approved.
fn outcome(enforcer: &Enforcer, line: &str) -> String {
    let told = enforcer.explain(&exec(line), now());
    match told.approve {
        Some(when) => format!("{} {}", told.verdict.as_str(), when.as_str()),
        None => told.verdict.as_str().to_owned(),
    }
}

/// Returns an enforcer with a saved rule, given as policy file text.
fn saved(rule: &str) -> Enforcer {
    let mut enforcer = asks_about_every_command();
    let text = format!("schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\n{rule}\n");
    let bundle = Bundle::parse_rules(&text, "policy.toml").unwrap_or_else(|error| panic!("{error}"));
    enforcer.replace_user_layer(Some(Layer::new(Scope::Mine, bundle)), crate::protocol::GrantScope::Project);
    enforcer
}

#[test]
fn interpreters_and_task_runners_are_remembered_only_for_sandboxed_runs() {
    let enforcer = asks_about_every_command();
    for (line, offers) in [
        ("make test", &["command = [\"make\", \"test\"], exact = true, sandboxed = true"][..]),
        (
            "python -m pytest tests/x.py -q",
            &[
                "command = [\"python\", \"-m\", \"pytest\", \"tests/x.py\", \"-q\"], exact = true, sandboxed = true",
                "command = [\"python\", \"-m\", \"pytest\"], sandboxed = true",
            ],
        ),
        (
            "node x.js",
            &[
                "command = [\"node\", \"x.js\"], exact = true, sandboxed = true",
                "command = [\"node\", \"x.js\"], sandboxed = true",
            ],
        ),
        ("npm test", &["command = [\"npm\", \"test\"], exact = true, sandboxed = true"]),
        ("npm run build", &["command = [\"npm\", \"run\", \"build\"], exact = true, sandboxed = true"]),
        ("./gradlew test", &["command = [\"./gradlew\", \"test\"], exact = true, sandboxed = true"]),
        ("just x", &["command = [\"just\", \"x\"], exact = true, sandboxed = true"]),
        ("cd sub && make test", &["command = [\"make\", \"test\"], exact = true, sandboxed = true"]),
    ] {
        let actions = exec(line);
        assert_eq!(said(&enforcer.always(&actions, now())), offers, "{line}");
        assert_eq!(outcome(&enforcer, line), "ask before", "{line}");
        for offer in 0..offers.len() {
            assert_eq!(outcome(&kept(&enforcer, &actions, offer), line), "ask effects", "{line} {offer}");
        }
        // A rule that applies until aye quits has the same limit.
        let mut session = enforcer.clone();
        session.keep(&enforcer.always(&actions, now()).offers[0].rules, Some(PathBuf::from(ROOT))).expect("valid");
        assert_eq!(outcome(&session, line), "ask effects", "{line}");
    }
}

#[test]
fn inline_code_and_code_on_stdin_are_never_remembered() {
    let enforcer = asks_about_every_command();
    for line in [
        "python -c 'x()'",
        "python",
        "python -",
        "echo x | python",
        "python <<'E'\nx()\nE",
        "python < x.py",
        "node -e 1",
        "node -p 1",
        "perl -pe s/a/b/ x",
        "ruby -e x",
        "make --eval=x",
        "make -f -",
        "just --command x",
        "npm exec x",
        "python -m timeit x",
        "python /dev/stdin",
        "python ../x.py",
        "python ~/x.py",
        "python $X",
        "python -m pytest > out",
    ] {
        let always = enforcer.always(&exec(line), now());
        assert!(always.offers.iter().all(|offer| offer.memory_only.is_some()), "{line}: {always:?}");
        assert!(
            !always.offers.iter().any(|offer| offer.rules.iter().any(|rule| rule.to_string().contains("sandboxed"))),
            "{line}"
        );
    }
}

#[test]
fn wide_interpreter_rules_do_not_cover_inline_code() {
    for (rule, covered, others) in [
        (
            "command = [\"python\"]\nsandboxed = true\ndecision = \"allow\"",
            &["python x.py", "python x.py -c y", "python -m pytest -c z", "cd sub && python x.py"][..],
            &["python -c x", "python", "python - x", "python -ic x", "echo x | python", "python x.py > y", "python ../x.py"][..],
        ),
        (
            "command = [\"make\"]\nsandboxed = true\ndecision = \"allow\"",
            &["make", "make test", "make test -j 4"],
            &["make --eval=x", "make SHELL=./x", "make -f -", "make -C ../x", "make -f x", "./make", "X=1 make"],
        ),
        (
            "command = [\"./gradlew\", \"test\"]\nsandboxed = true\ndecision = \"allow\"",
            &["./gradlew test", "./gradlew test --quiet"],
            &["./gradlew publish", "./gradlew test --init-script x", "gradlew test", "sub/gradlew test", "../gradlew test"],
        ),
        (
            "command = [\"python\", \"-m\", \"pytest\"]\nsandboxed = true\ndecision = \"allow\"",
            &["python -m pytest", "python -m pytest -x tests"],
            &["python -m pytestx", "python -m pip install x", "python3 -m pytest", "python -u -m pytest"],
        ),
    ] {
        let enforcer = saved(rule);
        for line in covered {
            assert_eq!(outcome(&enforcer, line), "ask effects", "{rule}: {line}");
        }
        for line in others {
            assert_eq!(outcome(&enforcer, line), "ask before", "{rule}: {line}");
        }
    }
}

#[test]
fn sandboxed_rules_bypass_neither_the_sandbox_nor_a_stricter_layer() {
    let rule = "[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"allow\"\nsandboxed = true\n";
    let table =
        |extra: &str| format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n{extra}{rule}");
    let own = |extra: &str, sandbox| {
        Enforcer::new(vec![Layer::new(Scope::User, parsed(&table(extra)))], Context { sandbox, ..context() })
            .approving(Some(Approve::Command))
    };
    assert_eq!(outcome(&own("", Sandbox::Present), "make"), "ask effects");
    assert_eq!(
        outcome(&own("approve = \"command\"\n", Sandbox::Present), "make"),
        "ask effects",
        "the user's own rule is more exact"
    );
    assert_eq!(outcome(&own("", Sandbox::Absent), "make"), "ask before");
    for terms in ["sandbox = \"off\"\n", "sandbox = \"read-only\"\n", "network = \"allow\"\n"] {
        assert_eq!(outcome(&own(terms, Sandbox::Present), "make"), "ask before", "{terms}");
    }
    assert_eq!(outcome(&own("", Sandbox::Present).with_shell("fish"), "make"), "ask before");
    for (scope, text) in [
        (Scope::Managed, "requires_approval = true\n"),
        (Scope::Managed, "requires_approval = false\napprove = \"command\"\n"),
        (Scope::Project, "requires_approval = true\napprove = \"command\"\n"),
        (
            Scope::Project,
            "requires_approval = false\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"make\"]\ndecision = \"ask\"\n",
        ),
    ] {
        let other = parsed(&format!("schema_version = 1\n[capabilities.\"Shell.Exec\"]\n{text}"));
        let layers = vec![Layer::new(scope, other), Layer::new(Scope::User, parsed(&table("")))];
        let enforcer = Enforcer::new(layers, context()).approving(Some(Approve::Command));
        assert_eq!(outcome(&enforcer, "make"), "ask before", "{scope:?} {text}");
    }
    // If no rule covers another part, the line is approved as a whole.
    let enforcer = own("", Sandbox::Present);
    assert_eq!(outcome(&enforcer, "make && frobnicate"), "ask before");
    assert_eq!(outcome(&enforcer, "make && rm -rf ~/"), "ask before");
    assert_eq!(outcome(&enforcer, "make && git push"), "ask before");
    // A project that grants itself such a rule gains nothing.
    let user = parsed("schema_version = 1\n[capabilities.\"Shell.Exec\"]\nrequires_approval = true\n");
    let layers = vec![Layer::new(Scope::User, user), Layer::new(Scope::Project, parsed(&table("")))];
    assert_eq!(outcome(&Enforcer::new(layers, context()).approving(Some(Approve::Command)), "make"), "ask before");
}

#[test]
fn sandboxed_rules_are_not_offered_if_they_would_have_no_effect() {
    let effects = asks_about_every_command().approving(Some(Approve::Effects));
    let always = effects.always(&exec("make test"), now());
    assert!(always.offers.is_empty() && always.never[0].contains("without asking; only its changes"), "{always:?}");
    let absent = with(Sandbox::Absent, "").always(&exec("make test"), now());
    assert!(absent.offers.is_empty() && absent.never[0].contains("this system has none"), "{absent:?}");
    let command = effects.always(&exec("cargo test"), now());
    assert!(!command.offers.is_empty(), "a rule lets it run in the workspace: {command:?}");
}

#[test]
fn commit_rules_cover_only_the_message() {
    let enforcer = asks_about_every_command();
    let always = enforcer.always(&exec("git commit -m 'fix ../x and ~/.ssh'"), now());
    assert_eq!(said(&always), ["command = [\"git\", \"commit\"], args = \"message\""]);
    let after = kept(&enforcer, &exec("git commit -m x"), 0);
    for line in [
        "git commit -m y",
        "git commit -m 'two words' -m 'and more'",
        "git commit --message='x; y && z'",
        "git commit --message y",
        "git commit -my",
        "git commit -m '--amend'",
        "git commit -m push",
        "git commit -m '/api returns .env'",
        "git commit -m .env",
        "cd sub && git commit -m y",
        "git commit -m x && git commit -m y",
    ] {
        assert_eq!(outcome(&after, line), "allow", "{line}");
    }
    for line in [
        "git commit",
        "git commit --no-verify -m x",
        "git commit -nm x",
        "git commit --amend -m x",
        "git commit -am x",
        "git commit -a -m x",
        "git commit -m x -- a.rs",
        "git commit -m x a.rs",
        "git commit -F msg",
        "git commit -C HEAD -m x",
        "git commit -m",
        "git commit -m x --exec=y",
        "git -C sub commit -m x",
        "git -c core.hooksPath=x commit -m x",
        "GIT_DIR=x git commit -m x",
        "git commit -m \"$(cat x)\"",
        "git commit -m $X",
        "git commit -m *",
        "git commit -m x > y",
        "/usr/bin/git commit -m x",
        "git commit-tree -m x",
    ] {
        assert!(outcome(&after, line).starts_with("ask"), "{line}");
    }
    let all = kept(&enforcer, &exec("git commit -am x"), 0);
    assert_eq!(outcome(&all, "git commit -a -m y"), "allow");
    assert_eq!(outcome(&all, "git commit -am y -m z"), "allow");
    assert_eq!(outcome(&all, "git commit -m y"), "ask before");
}

#[test]
fn git_add_is_remembered_except_with_options_that_run_programs() {
    let enforcer = asks_about_every_command();
    let always = enforcer.always(&exec("git add src/a.rs"), now());
    assert_eq!(said(&always), ["command = [\"git\", \"add\", \"src/a.rs\"], exact = true", "command = [\"git\", \"add\"]"]);
    let after = kept(&enforcer, &exec("git add src/a.rs"), 1);
    for line in ["git add -A", "git add .", "git add -u src", "git add src/b.rs && git add c"] {
        assert_eq!(outcome(&after, line), "allow", "{line}");
    }
    for line in
        ["git add -e", "git add -p", "git add --chmod=+x a", "git add ../x", "git add --pathspec-from-file=x", "git stash"]
    {
        assert_eq!(outcome(&after, line), "ask before", "{line}");
    }
}

#[test]
fn commands_after_cd_into_a_workspace_directory_are_evaluated_in_that_directory() {
    let enforcer = asks_about_every_command();
    assert_eq!(outcome(&enforcer, "cd src && ls"), "allow", "the built-in policy allows what only reads");
    assert_eq!(outcome(&enforcer, "cd src/a && cat ../b"), "allow");
    let always = enforcer.always(&exec("cd sub && cargo test"), now());
    assert_eq!(said(&always)[0], "command = [\"cargo\", \"test\"], exact = true");
    let after = kept(&enforcer, &exec("cd sub && cargo test"), 0);
    for line in ["cargo test", "cd sub && cargo test", "cd 'other dir' && cargo test", "cd ./a/b && cargo test && cargo test"] {
        assert_eq!(outcome(&after, line), "allow", "{line}");
        let told = after.explain(&exec(line), now());
        assert!(told.rule.starts_with("mine-here:"), "{line}: {}", told.rule);
    }
    for line in [
        "cd .. && cargo test",
        "cd /etc && cargo test",
        "cd ~ && cargo test",
        "cd sub/../.. && cargo test",
        "cd $X && cargo test",
        "cd sub; cargo test",
        "cd sub || cargo test",
        "cd sub && cargo test && cd .. && cargo test",
        "cd sub && cat ../../x",
        "cd .git && rm x",
        "cd sub && make",
    ] {
        assert!(outcome(&after, line).starts_with("ask"), "{line}: {}", outcome(&after, line));
    }
    // Until aye quits, the rule applies in that directory.
    let mut session = enforcer.clone();
    let [Action::Exec { command, cwd }] = &exec("cd sub && cargo test")[..] else { panic!("a command") };
    let directory = session.command_directory(command, cwd);
    assert_eq!(directory, Path::new(ROOT).join("sub"));
    session.keep(&always.offers[0].rules, Some(directory)).expect("valid");
    assert_eq!(outcome(&session, "cd sub && cargo test"), "allow");
    assert_eq!(outcome(&session, "cargo test"), "ask before");
    let mut plan = enforcer.clone();
    plan.set_mode(Mode::Plan);
    assert_eq!(outcome(&plan, "cd src && ls"), "allow");
    assert_eq!(outcome(&plan, "cd src && make"), "deny");
}

#[test]
fn invalid_keys_in_rules_are_errors_that_name_the_valid_ones() {
    let error = |rule: &str| {
        let text = format!("schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\n{rule}\n");
        Bundle::parse(&text, "p").map(|_| ()).unwrap_err().message
    };
    for (rule, expected) in [
        (
            "command = [\"make\"]\ndecision = \"ask\"\nsandboxed = true",
            "`sandboxed` is allowed only in a rule with `decision = \"allow\"`",
        ),
        ("command = [\"./x\"]\ndecision = \"allow\"", "`./x` is not a bare program name; expected one such as `git`"),
        (
            "command = [\"./../x\"]\ndecision = \"allow\"\nsandboxed = true",
            "`./../x` is not a bare program name; expected one such as `git` or `./gradlew`",
        ),
        (
            "command = [\"/bin/x\"]\ndecision = \"allow\"\nsandboxed = true",
            "`/bin/x` is not a bare program name; expected one such as `git` or `./gradlew`",
        ),
        (
            "command = [\"git\", \"push\"]\ndecision = \"allow\"\nargs = \"message\"",
            "`args = \"message\"` is allowed only in a rule",
        ),
        (
            "command = [\"git\", \"commit\"]\ndecision = \"allow\"\nexact = true\nargs = \"message\"",
            "`args = \"message\"` is allowed only in a rule",
        ),
        (
            "command = [\"python\"]\ndecision = \"allow\"\nsandboxed = true\nmatch = [\"python -c x\"]",
            "the rule does not match its `match` example `python -c x`",
        ),
    ] {
        assert!(error(rule).starts_with(expected), "{rule}: {}", error(rule));
    }
    let message = "command = [\"git\", \"commit\"]\ndecision = \"allow\"\nargs = \"message\"\nmatch = [\"git commit -m x\"]\n\
                   not_match = [\"git commit --amend -m x\"]";
    assert_eq!(outcome(&saved(message), "git commit -m y"), "allow");
}

#[test]
fn a_rule_edited_by_the_user_cannot_drop_sandboxed() {
    let enforcer = asks_about_every_command();
    let actions = exec("python -m pytest -q");
    let offers = enforcer.always(&actions, now()).offers;
    let written = |line: &str| enforcer.offer_written(&actions, &offers, line, now());
    assert!(written("command = [\"python\", \"-m\", \"pytest\"], sandboxed = true").is_ok());
    for line in [
        "command = [\"python\", \"-m\", \"pytest\"]",
        "command = [\"python\", \"-m\", \"pytest\", \"-q\"], exact = true",
        "command = [\"python\"], sandboxed = true",
        "command = [\"python\", \"-m\", \"pytest\"], sandboxed = 1",
        "command = [\"python\", \"-m\", \"pytest\"], args = \"any\"",
    ] {
        assert!(written(line).is_err(), "{line}");
    }
}

/// Small deterministic pseudo-random number generator.
struct Choices(u64);

impl Choices {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % below
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.next(words.len())]
    }
}

#[test]
fn a_saved_rule_never_allows_a_command_that_runs_another_program() {
    const PROGRAMS: &[&str] =
        &["python", "python3", "node", "make", "npm", "cargo", "git", "./gradlew", "just", "sh", "env", "rm"];
    const WORDS: &[&str] = &[
        "-c",
        "-e",
        "-",
        "-m",
        "x",
        "pytest",
        "test",
        "run",
        "build",
        "commit",
        "-am",
        "--message=x",
        "--amend",
        "--no-verify",
        "add",
        ".",
        "x.py",
        "x.js",
        "../x",
        "~/x",
        "$X",
        "`x`",
        "$(x)",
        "'a b'",
        "\"-c\"",
        ">",
        "out",
        "|",
        "&&",
        ";",
        "||",
        "&",
        "<<<",
        "--eval=x",
        "-f",
        "SHELL=x",
        "X=1",
        "cd",
        "sub",
        "{a,b}",
        "*",
        "\\-c",
        "'-'c",
        "-\"c\"",
        "--",
        "-C",
        "\n",
        "#",
    ];
    let enforcer = asks_about_every_command();
    let mut choices = Choices(7);
    let mut line = |most: usize| {
        let mut line = if choices.next(4) == 0 { "cd sub && ".to_owned() } else { String::new() };
        line.push_str(choices.pick(PROGRAMS));
        for _ in 0..choices.next(most) {
            line.push(' ');
            line.push_str(choices.pick(WORDS));
        }
        line
    };
    let (mut offered, mut allowed) = (0, 0);
    for _ in 0..200 {
        let first = line(4);
        let always = enforcer.always(&exec(&first), now());
        for offer in 0..always.offers.len() {
            let rules = &always.offers[offer].rules;
            if always.offers[offer].memory_only.is_some() {
                continue;
            }
            offered += 1;
            let after = kept(&enforcer, &exec(&first), offer);
            for _ in 0..60 {
                let other = line(6);
                if outcome(&after, &other) == outcome(&enforcer, &other) {
                    continue;
                }
                allowed += 1;
                let parsed = crate::policy::shell::read(crate::policy::entered(&other).map_or(&*other, |entered| entered.rest));
                for invocation in parsed.parts.iter().flat_map(|part| &part.invocations) {
                    let words: Vec<&str> = invocation.argv.iter().map(|arg| arg.text.as_str()).collect();
                    let of_rule = |rule: &crate::protocol::GrantRule| match rule {
                        crate::protocol::GrantRule::Command(rule) => {
                            let same = rule.words.iter().zip(&words).all(|(one, other)| one == other || rule.message);
                            same && words.len() >= rule.words.len() && (!rule.exact || words.len() == rule.words.len())
                        }
                        _ => false,
                    };
                    let alone = crate::policy::line(&words);
                    let by_rule = rules.iter().any(of_rule);
                    assert!(by_rule || outcome(&enforcer, &alone) == "allow", "{rules:?} lets `{other}` run `{alone}`");
                    assert!(
                        crate::policy::interpreters::kind(words[0]).is_none()
                            || crate::policy::interpreters::program_word_count(&invocation.argv).is_ok(),
                        "{rules:?}: {other}"
                    );
                }
            }
        }
    }
    assert!(offered > 20 && allowed > 10, "{offered} offers, {allowed} lines allowed");
}

#[test]
fn quoted_directory_names_resolve_to_the_directory_that_the_shell_enters() {
    const LETTERS: &[&str] =
        &["a", "B", "1", " ", "'", "\"", "\\", "$", "`", "*", "~", "-", ".", "/", ";", "&", "(", "#", "!", "é", "\t"];
    let enforcer = asks_about_every_command();
    let mut choices = Choices(11);
    let mut entered = 0;
    for _ in 0..1_000 {
        let name: String = (0..=choices.next(6)).map(|_| choices.pick(LETTERS)).collect();
        let single = format!("'{}'", name.replace('\'', r"'\''"));
        let double: String = name.chars().fold("\"".to_owned(), |text, letter| match letter {
            '"' | '\\' | '$' | '`' => format!("{text}\\{letter}"),
            _ => format!("{text}{letter}"),
        }) + "\"";
        let escaped: String = name
            .chars()
            .map(|letter| if letter.is_alphanumeric() { letter.to_string() } else { format!("\\{letter}") })
            .collect();
        for quoted in [single, double, escaped] {
            let line = format!("cd {quoted} && ls");
            let Some(found) = crate::policy::entered(&line) else { continue };
            entered += 1;
            assert_eq!(found.directory.text, name, "{line}");
            assert_eq!(found.rest, "ls");
            if outcome(&enforcer, &line) == "allow" {
                let cwd = Target { given: ".".into(), real: PathBuf::from(ROOT), place: Place::Directory };
                assert!(enforcer.command_directory(&line, &cwd).starts_with(ROOT), "{line}");
            }
        }
        // Without quotes, a name with special characters is either read unchanged or not at all.
        if let Some(found) = crate::policy::entered(&format!("cd {name} && ls")).filter(|_| !name.contains('&')) {
            let plain = |text: &str| text.replace(['\\', '\'', '"'], "").replace([' ', '\t'], "");
            assert_eq!(plain(&found.directory.text).trim_start_matches("--"), plain(&name).trim_start_matches("--"), "{name}");
        }
    }
    assert!(entered > 300, "{entered}");
}
