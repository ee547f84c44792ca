use super::*;
use crate::cli::auth::args::*;
use crate::cli::policy::args::*;
use crate::cli::sessions::args::*;
use crate::cli::usage::args::*;
use crate::host::options::*;
use crate::host::usage_report::UsageGroup;
use crate::protocol::Mode;
use clap::CommandFactory;
use std::path::PathBuf;

fn words(line: &str) -> Vec<OsString> {
    // The words in these tables are split at spaces; `~` stands for a space within a word.
    std::iter::once("aye")
        .chain(line.split(' ').filter(|word| !word.is_empty()))
        .map(|word| word.replace('~', " ").into())
        .collect()
}

#[track_caller]
fn invocation(line: &str) -> CliInvocation {
    match parse(words(line), Nesting::Outermost) {
        Ok(invocation) => invocation,
        Err(stop) => panic!("{line}: {stop:?}"),
    }
}

#[track_caller]
fn usage_error(line: &str, nesting: Nesting) -> String {
    match parse(words(line), nesting) {
        Err(ParseExit::Usage(message)) => message,
        other => panic!("{line}: {other:?}"),
    }
}

fn interactive(prompt: Option<&str>, session: SessionChoice) -> CliAction {
    CliAction::Interactive { prompt: prompt.map(str::to_owned), is_literal: false, session }
}

fn literally(prompt: &str, session: SessionChoice) -> CliAction {
    CliAction::Interactive { prompt: Some(prompt.to_owned()), is_literal: true, session }
}

fn run(prompt: ExecPrompt, session: SessionChoice, format: OutputFormat) -> CliAction {
    CliAction::Exec { prompt, takes_input: true, session, format, options: RunOptions::default() }
}

fn say(text: &str) -> ExecPrompt {
    ExecPrompt::Text(text.to_owned())
}

#[test]
fn the_command_definition_is_valid() {
    definition::Cli::command().debug_assert();
}

#[test]
fn arguments_are_parsed_into_actions() {
    use ExecPrompt::{GoOn, Piped, Stdin};
    use OutputFormat::{Events, Json, StreamJson, Text};
    use SessionChoice::{Latest, New, Pick};
    let id = |id: &str| SessionChoice::Id(id.to_owned());
    for (line, expected) in vec![
        ("", interactive(None, New)),
        ("fix~the~parser", interactive(Some("fix the parser"), New)),
        ("~", interactive(None, New)),
        ("-- status", literally("status", New)),
        ("-- exe", literally("exe", New)),
        ("-c continue", interactive(Some("continue"), Latest)),
        ("exec -c apply", run(say("apply"), Latest, Text)),
        ("-p -- login", run(ExecPrompt::Literal("login".to_owned()), New, Text)),
        ("-- exec", literally("exec", New)),
        ("-- --resume", literally("--resume", New)),
        ("-c", interactive(None, Latest)),
        ("--continue go~on", interactive(Some("go on"), Latest)),
        ("--resume", interactive(None, Pick)),
        ("--resume 7f3a01", interactive(None, id("7f3a01"))),
        ("--resume 7F3A01bc go~on", interactive(Some("go on"), id("7f3a01bc"))),
        ("--resume=00112233445566778899aabbccddeeff", interactive(None, id("00112233445566778899aabbccddeeff"))),
        ("--resume go~on", interactive(Some("go on"), Pick)),
        ("-r latest", interactive(None, Latest)),
        ("-p -r latest", run(GoOn, Latest, Text)),
        ("-pr latest more", run(say("more"), Latest, Text)),
        ("--resume latest go~on", interactive(Some("go on"), Latest)),
        ("--fork latest", interactive(None, SessionChoice::Fork(None))),
        ("resume latest", interactive(None, Latest)),
        ("-r -- latest", literally("latest", Pick)),
        ("-r /fix", interactive(Some("/fix"), Pick)),
        ("--resume -- 7f3a01", literally("7f3a01", Pick)),
        ("-r", interactive(None, Pick)),
        ("-r 7f3a01 go~on", interactive(Some("go on"), id("7f3a01"))),
        ("resume", interactive(None, Pick)),
        ("resume --last", interactive(None, Latest)),
        ("resume --last go~on", interactive(Some("go on"), Latest)),
        ("resume 7F3A01", interactive(None, id("7f3a01"))),
        ("resume 7f3a01 next", interactive(Some("next"), id("7f3a01"))),
        ("resume go~on", interactive(Some("go on"), Pick)),
        ("--session 7f3a01", interactive(None, id("7f3a01"))),
        ("--prompt hi", run(say("hi"), New, Text)),
        ("--fork", interactive(None, SessionChoice::Fork(None))),
        ("--fork 7F3A01 go~on", interactive(Some("go on"), SessionChoice::Fork(Some("7f3a01".to_owned())))),
        ("--fork go~on", interactive(Some("go on"), SessionChoice::Fork(None))),
        ("exec --fork=7f3a01 more", run(say("more"), SessionChoice::Fork(Some("7f3a01".to_owned())), Text)),
        ("exec hi", run(say("hi"), New, Text)),
        ("exec -", run(Stdin, New, Text)),
        ("exec --json hi", run(say("hi"), New, Events)),
        ("exec hi --json", run(say("hi"), New, Events)),
        ("exec --output-format events hi", run(say("hi"), New, Events)),
        ("exec --output-format json hi", run(say("hi"), New, Json)),
        ("exec --output-format=stream-json hi", run(say("hi"), New, StreamJson)),
        ("exec --output-format text hi", run(say("hi"), New, Text)),
        ("exec -p hi", run(say("hi"), New, Text)),
        ("exec -- -p", run(ExecPrompt::Literal("-p".to_owned()), New, Text)),
        ("exec -- exec", run(ExecPrompt::Literal("exec".to_owned()), New, Text)),
        ("exec", run(Piped, New, Text)),
        ("-p", run(Piped, New, Text)),
        ("exec -c", run(GoOn, Latest, Text)),
        ("exec -c more", run(say("more"), Latest, Text)),
        ("exec --resume", run(GoOn, Pick, Text)),
        ("exec --resume 7f3a01 --json", run(GoOn, id("7f3a01"), Events)),
        ("exec --resume=7f3a01 more", run(say("more"), id("7f3a01"), Text)),
        ("-p hi", run(say("hi"), New, Text)),
        ("hi -p", run(say("hi"), New, Text)),
        ("-p --output-format json hi", run(say("hi"), New, Json)),
        ("-p -c", run(GoOn, Latest, Text)),
        ("-p -", run(Stdin, New, Text)),
        ("demo", CliAction::Demo { answers: Answers::Person }),
        ("demo --yes", CliAction::Demo { answers: Answers::Yes }),
        ("tool list", CliAction::ToolList { json: false }),
        ("tool list --json", CliAction::ToolList { json: true }),
        ("tool schema ReadFile", CliAction::ToolSchema { name: "ReadFile".to_owned() }),
        (
            "tool call ReadFile --args {\"path\":\"a\"} --json --yes",
            CliAction::ToolCall {
                name: "ReadFile".to_owned(),
                arguments: "{\"path\":\"a\"}".to_owned(),
                json: true,
                answers: Answers::Yes,
            },
        ),
        ("tool call EditFile --args - --plan", CliAction::ToolPlan { name: "EditFile".to_owned(), arguments: "-".to_owned() }),
        ("policy check --jsonl", CliAction::Policy(PolicyAction::Check)),
        (
            "sessions list",
            CliAction::Sessions(SessionsAction::List { json: false, scope: SessionScope::Project, archived: false }),
        ),
        (
            "sessions list --json --all",
            CliAction::Sessions(SessionsAction::List { json: true, scope: SessionScope::All, archived: false }),
        ),
        (
            "sessions list --archived",
            CliAction::Sessions(SessionsAction::List { json: false, scope: SessionScope::Project, archived: true }),
        ),
        ("sessions archive 7f3a01", CliAction::Sessions(SessionsAction::Archive { id: "7f3a01".to_owned(), archived: true })),
        ("sessions unarchive 7f3a01", CliAction::Sessions(SessionsAction::Archive { id: "7f3a01".to_owned(), archived: false })),
        ("sessions show 7f3a01", CliAction::Sessions(SessionsAction::Show { id: "7f3a01".to_owned(), json: false })),
        ("sessions delete 7f3a01", CliAction::Sessions(SessionsAction::Delete { id: "7f3a01".to_owned() })),
        (
            "sessions export 7f3a01 --format md -o -",
            CliAction::Sessions(SessionsAction::Export {
                id: "7f3a01".to_owned(),
                form: ExportForm::Markdown,
                output: None,
                artifacts: WithArtifacts::No,
            }),
        ),
        ("sessions import -", CliAction::Sessions(SessionsAction::Import { file: "-".into() })),
        (
            "sessions prune --dry-run --older-than 30",
            CliAction::Sessions(SessionsAction::Prune {
                run: PruneRun::Say,
                older_than: Some(30),
                scope: SessionScope::Project,
                json: false,
            }),
        ),
        ("auth login", CliAction::Auth(AuthAction::LogIn { provider: None, key_on_stdin: false })),
        (
            "auth login anthropic --key-stdin",
            CliAction::Auth(AuthAction::LogIn { provider: Some("anthropic".to_owned()), key_on_stdin: true }),
        ),
        ("auth logout openai", CliAction::Auth(AuthAction::LogOut(LogOut::Of("openai".to_owned())))),
        ("auth logout --all", CliAction::Auth(AuthAction::LogOut(LogOut::All))),
        ("auth status --check", CliAction::Auth(AuthAction::Status { json: false, check: true })),
        ("models", CliAction::Models { ask: false, json: false, filter: None }),
        ("models --ask --json qwen", CliAction::Models { ask: true, json: true, filter: Some("qwen".to_owned()) }),
        ("config path", CliAction::ConfigPath),
        ("config show", CliAction::ConfigShow),
        ("config keys", CliAction::ConfigKeys),
        ("config schema", CliAction::ConfigSchema),
        ("doctor", CliAction::Doctor { json: false }),
        ("sync", CliAction::Sync { drop: None, json: false }),
        ("sync --json", CliAction::Sync { drop: None, json: true }),
        ("sync --drop audit", CliAction::Sync { drop: Some("audit".to_owned()), json: false }),
        ("doctor --json", CliAction::Doctor { json: true }),
    ] {
        assert_eq!(invocation(line).action, expected, "aye {line}");
    }
}

#[test]
fn take_over_requires_continuing_a_session() {
    for line in [
        "--take-over -c",
        "--take-over --resume=7f3a9c",
        "exec -c --take-over",
        "exec --resume=7f3a9c --take-over hi",
        "resume --take-over",
    ] {
        assert!(invocation(line).common.take_over, "{line}");
    }
    assert!(!invocation("exec -c").common.take_over);
    for line in ["--take-over", "--take-over hi", "exec --take-over hi", "--take-over exec -c"] {
        usage_error(line, Nesting::Outermost);
    }
    assert!(usage_error("exec -c --take-over", Nesting::InsideAye).contains("AYE=1"));
}

#[test]
fn common_flags_are_accepted_before_and_after_every_subcommand() {
    let flags = "-C /d --profile ci -m anthropic/claude-sonnet-5 --mode plan --policy p.toml --add-dir /a --add-dir /b --trust \
                 --set llm.max_retries=5 --set ui.plain=true --max-steps 7 --no-color --ascii --plain -vv";
    let expected = Common {
        directory: Some(PathBuf::from("/d")),
        profile: Some("ci".to_owned()),
        model: Some("anthropic/claude-sonnet-5".to_owned()),
        mode: Some(Mode::Plan),
        fallback_mode: None,
        policy: Some(PathBuf::from("p.toml")),
        add_dirs: vec![PathBuf::from("/a"), PathBuf::from("/b")],
        trust: Trust::ForThisRun,
        set: vec![
            ("llm.max_retries".to_owned(), "5".to_owned()),
            ("ui.plain".to_owned(), "true".to_owned()),
            ("ui.ascii".to_owned(), "true".to_owned()),
        ],
        max_steps: Some(7),
        take_over: false,
        color: Color::Never,
        plain: true,
        verbosity: 2,
        copy: None,
    };
    for sub in ["exec hi", "demo", "tool list", "tool schema X", "policy check --jsonl", "sessions list", "config path", "hi"] {
        assert_eq!(invocation(&format!("{flags} {sub}")).common, expected, "{sub}");
        assert_eq!(invocation(&format!("{sub} {flags}")).common, expected, "{sub}");
    }
    for (line, dirs) in [
        ("--add-dir /a exec hi --add-dir /b", vec!["/a", "/b"]),
        ("--add-dir=/a tool list --add-dir /b", vec!["/a", "/b"]),
        ("--add-dir /a hi", vec!["/a"]),
        ("-- --add-dir", vec![]),
    ] {
        assert_eq!(invocation(line).common.add_dirs, dirs.into_iter().map(PathBuf::from).collect::<Vec<_>>(), "{line}");
    }
    assert_eq!(invocation("-m a/b exec -m c/d hi").common.model.as_deref(), Some("c/d"));
}

#[test]
fn allowed_tools_are_separated_by_commas_or_spaces_and_repeatable() {
    for (line, expected) in [
        ("exec hi", None),
        ("exec --allowed-tools Grep hi", Some(vec!["Grep"])),
        ("-p --allowed-tools Grep,Glob~ReadFile hi", Some(vec!["Grep", "Glob", "ReadFile"])),
        ("exec --allowed-tools Grep --allowedTools=Read, hi", Some(vec!["Grep", "Read"])),
        ("exec --allowed-tools Bash(git~log:*),Read hi", Some(vec!["Bash(git log:*)", "Read"])),
        ("exec --tools= hi", Some(vec![])),
    ] {
        let CliAction::Exec { options, .. } = invocation(line).action else { panic!("{line}") };
        let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
        assert_eq!(options.allowed_tools, expected, "{line}");
    }
}

#[test]
fn the_name_of_a_family_is_its_newest_model_and_a_notice_says_which() {
    for family in ["sonnet", "opus", "haiku"] {
        let invocation = invocation(&format!("-m {family} -p hi"));
        let name = invocation.common.model.unwrap();
        assert!(name.starts_with(&format!("anthropic/claude-{family}-")), "{name}");
        assert!(invocation.notice.unwrap().contains(&name), "{name}");
    }
    assert_eq!(invocation("-m anthropic/claude-sonnet-5 -p hi").notice, None);
    assert_eq!(invocation("--model=a/b hi").notice, None);
}

#[test]
fn lines_of_other_agents_with_the_same_meaning_are_accepted() {
    for (line, same) in [
        ("auth list", "auth status"),
        ("auth ls", "auth status"),
        ("config list", "config show"),
        ("mcp ls", "mcp list"),
        ("mcp rm docs", "mcp remove docs"),
        ("plugin uninstall x", "plugin remove x"),
        ("review --uncommitted", "review"),
        ("mcp add --transport http docs https://example.org", "mcp add --type http docs https://example.org"),
        ("mcp add -s user -t stdio -e A=b docs -- npx -y docs", "mcp add --env A=b docs -- npx -y docs"),
        ("-p --allowedTools Read fix", "-p --allowed-tools Read fix"),
        ("--session latest fix~it", "-c fix~it"),
    ] {
        assert_eq!(invocation(line), invocation(same), "{line}");
    }
}

#[test]
fn invalid_arguments_are_rejected_with_a_hint() {
    for (line, said) in [
        ("--frobnicate", "unexpected argument"),
        ("fix the parser", "unexpected argument `the`\nhint: put a prompt of several words in quotes"),
        ("fix demo", "quotes"),
        ("run the tests", "`aye exec PROMPT` runs one task\nhint: put a prompt of several words in quotes"),
        ("login", "`aye auth login`"),
        ("-p resume", "cannot be combined"),
        ("-p review", "put `--` before a prompt"),
        ("exec review", "`aye exec -- review`"),
        ("exec exec", "an aye command"),
        ("resume 7f3a", "invalid session ID `7f3a`: must be at least 6 hex digits"),
        ("resume --last 7f3a01", "remove one of them"),
        ("resume go~on more", "the whole prompt in quotes"),
        ("exec - --no-stdin", "remove one of them"),
        ("exec --no-stdin", "missing prompt"),
        ("--no-stdin hi", "`--no-stdin` needs `-p`"),
        ("--yolo hi", "`--yolo`: the option belongs to another agent\nhint: no option skips the policy"),
        ("exec -a never hi", "hint: use `--mode plan`"),
        ("--permission-mode bypassPermissions hi", "hint: use `--mode plan`"),
        ("login openai", "`aye auth login`"),
        ("help frobnicate", "unrecognized subcommand"),
        ("exec ~", "the prompt is empty"),
        ("exec a b", "in quotes"),
        ("help polcy", "did you mean `aye help policy`?"),
        ("help policy explian", "did you mean `aye help policy explain`?"),
        ("help login", "`aye auth login`"),
        ("exec --frobnicate", "hint: run `aye exec --help` for usage"),
        ("policy grants revoke", "hint: usage: aye policy grants revoke"),
        ("--json hi", "need `-p`"),
        ("--allowed-tools Grep hi", "`--allowed-tools` needs `-p`"),
        ("--allowed-tools Grep exec hi", "after the subcommand"),
        ("--ephemeral hi", "`--ephemeral` needs `-p`"),
        ("exec --ephemeral -c hi", "`--ephemeral` cannot be combined with `-c`"),
        ("exec --ephemeral --resume=7f3a01 hi", "cannot be combined with `--resume`"),
        ("-p --ephemeral --fork hi", "cannot be combined with `--fork`"),
        ("exec --json --output-format text hi", "cannot be used with"),
        ("exec --output-format xml hi", "stream-json"),
        ("-c --resume", "cannot be used with"),
        ("--resume=7f3a", "at least 6 hex digits"),
        ("--resume=", "--resume"),
        ("--resume=nonsense", "at least 6 hex digits"),
        ("--mode yolo", "auto-edit"),
        ("-m claude", "hint: run `aye models claude`"),
        ("--add-dir . ..", "unexpected argument `..`: `--add-dir` takes one directory"),
        ("-p --allowedTools Read Edit", "unexpected argument `Edit`: `--allowed-tools` takes one list"),
        ("-p --tools Read Edit fix~it", "hint: repeat the option: --allowed-tools Edit"),
        ("-p -r 5", "no session `5`"),
        ("-r 7f3a", "no session `7f3a`"),
        ("-r auth-refactor Finish~this~PR", "no session `auth-refactor`"),
        ("exec --resume auth-refactor", "no session `auth-refactor`"),
        ("--session-id 550e8400-e29b-41d4-a716-446655440000 hi~there", "aye chooses the ID of a new session"),
        ("exec -p work hi~there", "hint: use `--profile work`"),
        ("--debug api,mcp fix~it", "hint: use `--verbose`"),
        ("run --variant high hi~there", "`run` is not an aye command\nhint: `aye` starts a session"),
        ("run --command x", "`run` is not an aye command"),
        ("login --device-auth", "hint: `aye auth login`"),
        ("stats --days 30", "hint: `aye usage`"),
        ("mcp add --scope project docs https://example.org", "hint: aye saves servers in your config.toml"),
        ("mcp remove github docs", "unexpected argument `docs`"),
        ("mcp get docs", "`get`: the command belongs to another agent\nhint: use `aye mcp test NAME`"),
        ("mcp add-json docs {}", "`aye mcp add NAME URL`"),
        ("mcp enable docs", "set `enabled` of the server"),
        ("config get model", "hint: use `aye config show`"),
        ("config set model x", "hint: edit config.toml"),
        ("plugin install x", "hint: use `aye plugin add SOURCE`"),
        ("plugin marketplace add x", "hint: use `aye plugin add SOURCE`"),
        ("skills install x", "`.aye/skills`"),
        ("models --refresh", "hint: use `aye models update`"),
        ("serve --port 80", "hint: use `aye serve --socket PATH`"),
        ("-s ses_123 hi", "hint: use `-r ID`"),
        ("-i explain~this", "hint: use `aye PROMPT`"),
        ("-m claude-sonet-5", "hint: did you mean `anthropic/claude-sonnet-5`?"),
        ("-m claude-haiku-4-5", "hint: did you mean `anthropic/claude-haiku-4-5`?"),
        ("-m frobnicator", "hint: run `aye models` to list the models"),
        ("exce hi", "unexpected argument `hi`\nhint: did you mean `aye exec`?"),
        ("mcp add dice python3 /tmp/a~b.py", "hint: put the command after `--`: `aye mcp add dice -- python3 '/tmp/a b.py'`"),
        ("mcp add --env A=b dice python3 mcp.py", "`aye mcp add NAME -- COMMAND...`"),
        ("doctor hi", "unexpected argument `hi`\nhint: run `aye doctor --help` for usage"),
        ("exec --jsn hi", "error: unexpected argument `--jsn`\nhint: did you mean `--json`?"),
        ("--modle x", "error: unexpected argument `--modle`\nhint: did you mean `--model`?"),
        ("--mode plna", "hint: did you mean `plan`?"),
        ("--mode fast", "[possible values: plan, ask, auto-edit, auto]\nhint: run `aye --help` for usage"),
        ("policy explain --path x", "error: unexpected argument `--path`\nhint: run `aye policy explain --help` for usage"),
        ("policy shwo", "hint: did you mean `aye policy show`?"),
        ("import", "hint: AGENT is one of: claude, codex, gemini, opencode\n"),
        ("fork", "it is a slash command of aye"),
        ("diff", "`/diff`"),
        ("--set nonsense", "KEY=VALUE"),
        ("--max-steps 0", "error: invalid value `0` for `--max-steps <N>`: must be a whole number from 1 to 4294967295\n"),
        ("--max-steps many", "must be a whole number"),
        ("exec hi --add-dir", "a value is required"),
        ("tool", "list"),
        ("tool call", "NAME"),
        ("policy check", "--jsonl"),
        ("sessions delete", "ID"),
        ("sessions show xyz", "at least 6 hex digits"),
        ("-p demo", "-p"),
        ("-c exec hi", "after the subcommand\nhint: run `aye exec -c hi`\n"),
        ("-c doctor", "hint: remove these options"),
        ("-c model=x", "hint: put a prompt after `--`: aye -c -- …"),
        ("exec -c model=x hi", "hint: use `--set KEY=VALUE`"),
        ("policy explain git -c user.name=x commit", "put the command after `--`"),
    ] {
        let message = usage_error(line, Nesting::Outermost);
        assert!(message.contains(said), "aye {line}: {message}");
    }
}

#[test]
fn nested_aye_processes_may_not_widen_permissions() {
    for line in [
        "--trust",
        "exec --trust hi",
        "--policy p.toml exec hi",
        "--profile ci exec hi",
        "policy check --jsonl --policy p.toml",
        "--mode auto",
        "--mode auto-edit",
        "exec --mode=auto hi",
        "demo --yes",
        "tool call X --yes",
        "auth login anthropic --key-stdin",
        "auth logout --all",
        "mcp serve",
        "mcp serve --ask client",
    ] {
        let message = usage_error(line, Nesting::InsideAye);
        assert!(message.contains("AYE=1"), "aye {line}: {message}");
        assert!(parse(words(line), Nesting::Outermost).is_ok(), "aye {line}");
    }
    for line in ["exec hi", "--mode plan exec hi", "tool call X", "policy check --jsonl", "auth status", "models --ask"] {
        assert!(parse(words(line), Nesting::InsideAye).is_ok(), "aye {line}");
    }
}

#[test]
fn help_and_version_are_printed_without_an_error() {
    for line in ["--help", "-h", "--version", "-V", "exec --help", "tool call --help", "help", "help exec", "help tool call"]
        .into_iter()
        .chain(["-c a=b --help"])
    {
        assert!(matches!(parse(words(line), Nesting::Outermost), Err(ParseExit::Told(_))), "aye {line}");
    }
}

/// Returns the inline code spans of a document, excluding its code blocks.
fn code_spans(text: &str) -> Vec<String> {
    let outside: Vec<_> = text.split("```").step_by(2).collect();
    outside.iter().flat_map(|part| part.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// Replaces a placeholder with a valid value.
fn filled_in(word: &str) -> &str {
    match word {
        "COMMAND" => "exec",
        "ID" => "0a1b2c3d",
        "MODE" => "ask",
        "PROMPT" => "explain~it",
        "PROVIDER" => "anthropic",
        "SHELL" => "bash",
        "--resume=ID" => "--resume=0a1b2c3d",
        other => other,
    }
}

#[test]
fn documented_commands_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md")).chain([root.join("README.md")]);
    let (mut count, mut faults) = (0, Vec::new());
    for page in pages {
        for span in code_spans(&std::fs::read_to_string(&page).unwrap()) {
            // Syntax with alternatives or shell quoting cannot be split at spaces.
            let Some(line) = span.strip_prefix("aye ").filter(|line| !line.contains(['[', '|', '<', '\'', '"', '…', '·']))
            else {
                continue;
            };
            count += 1;
            let line = line.split(' ').map(filled_in).collect::<Vec<_>>().join(" ");
            // A command without its arguments may be invalid. Its error must list the arguments or be its help.
            if let Err(ParseExit::Usage(message)) = parse(words(&line), Nesting::Outermost)
                && message.starts_with("error: ")
                && !message.contains("required arguments were not provided")
            {
                faults.push(format!("{}: `{span}`: {message}", page.display()));
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn usage_accepts_a_period_a_group_and_a_project() {
    let request = UsageRequest { period: Period::HoursAgo(168), by: UsageGroup::Day, this_project: true, json: true };
    assert_eq!(invocation("usage --since 7d --by day --project --json").action, CliAction::Usage(request));
    let request = UsageRequest { period: Period::HoursAgo(720), by: UsageGroup::Model, this_project: false, json: false };
    assert_eq!(invocation("usage").action, CliAction::Usage(request));
}
