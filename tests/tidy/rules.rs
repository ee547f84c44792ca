//! Rules per file, as tables: owners of words, pure modules, forbidden words.

use crate::source::{Role, Source, lines_with, products, sources};

/// Words and the path prefixes under which they are allowed.
struct Owner {
    words: &'static [&'static str],
    places: &'static [&'static str],
    why: &'static str,
}

const OWNERS: &[Owner] = &[
    Owner { words: &["unsafe"], places: &["src/sys/"], why: "only `sys` may" },
    Owner {
        words: &["nix", "libc", "rustix"],
        places: &["src/sys/", "src/tui/"],
        why: "the operating system is asked by `sys`, the terminal's own line by `tui`",
    },
    Owner {
        words: &["crossterm", "ratatui", "termina", "tui_textarea"],
        places: &["src/tui/"],
        why: "the screen belongs to `tui`",
    },
    Owner {
        words: &["reqwest"],
        places: &["src/sys/http", "src/llm/", "src/config/address", "src/mcp/"],
        why: "requests go through `sys`, whose client the MCP library is given; an address is parsed as the request will parse it",
    },
    Owner {
        words: &["hyper", "hyper_util", "http_body_util"],
        places: &["src/sys/proxy", "src/sys/http/proxies", "src/mcp/auth/http"],
        why: "only the proxy of commands serves anyone, and errors name the proxy of a request; what the OAuth library is answered \
            is one of its responses",
    },
    Owner {
        words: &["keyring::Entry"],
        places: &["src/sys/keyring"],
        why: "a keyring may hang; `sys` waits for it with a limit",
    },
    Owner {
        words: &["object_store"],
        places: &["src/services/workspace", "src/sys/http/object_connector"],
        why: "the object store belongs to the workspace, which is given the HTTP client of `sys`",
    },
    Owner { words: &["rusqlite"], places: &["src/store/"], why: "the database belongs to `store`" },
    Owner {
        words: &["tree_sitter", "tree_sitter_bash"],
        places: &["src/policy/"],
        why: "the shell's grammar belongs to `policy`",
    },
    Owner { words: &["clap"], places: &["src/cli/"], why: "the command line belongs to `cli`" },
    Owner {
        words: &["env::var", "env::var_os", "env::vars"],
        places: &["src/cli/", "src/config/", "src/host/", "src/sys/"],
        why: "the environment is read once, at the start",
    },
    Owner {
        words: &["print!", "println!", "eprint!", "eprintln!", "io::stdout", "io::stderr"],
        places: &["src/cli/", "src/headless/", "src/host/", "src/tui/"],
        why: "what a person reads goes through a front end",
    },
    Owner {
        words: &["process::exit"],
        places: &["src/cli/", "src/host/", "src/main.rs", "src/sys/"],
        why: "the exit code is chosen by `cli`",
    },
];

/// Paths that give access to the disk, network, processes, environment or terminal.
const WORLD: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::io",
    "std::thread",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::io",
    "tempfile",
];

/// Sources of time and randomness. Pure modules receive time and random values as arguments.
const CLOCK: &[&str] = &["SystemTime", "Instant", "Timestamp::now", "Zoned::now", "Uuid::new_v4"];

/// Path prefix of code whose results depend only on its arguments.
struct Pure {
    place: &'static str,
    never: &'static [&'static str],
    except: &'static str,
}

const PURE: &[Pure] = &[
    Pure { place: "src/text/", never: WORLD, except: "" },
    Pure { place: "src/text/", never: CLOCK, except: "" },
    Pure { place: "src/protocol/", never: WORLD, except: "" },
    Pure { place: "src/protocol/", never: CLOCK, except: "" },
    Pure { place: "src/policy/", never: WORLD, except: "" },
    Pure { place: "src/policy/", never: CLOCK, except: "" },
    // `remote.rs` names the stream traits of programs that other modules start.
    Pure { place: "src/ports/", never: WORLD, except: "src/ports/remote.rs" },
    Pure { place: "src/ports/", never: CLOCK, except: "" },
    Pure { place: "src/session/", never: WORLD, except: "" },
    Pure { place: "src/session/", never: CLOCK, except: "" },
    Pure { place: "src/agent/", never: WORLD, except: "" },
    // The host executes the effects of the state machine and supplies time and IDs.
    Pure { place: "src/agent/", never: CLOCK, except: "src/agent/host" },
];

/// Words that are forbidden outside tests.
const NEVER: &[(&str, &str)] = &[
    (".unwrap()", "say what to do when it is not there"),
    (".expect(", "say what to do when it is not there"),
    ("panic!", "return an error"),
    ("todo!", "do it"),
    ("unimplemented!", "do it"),
    ("dbg!", "take it out"),
    ("#[allow(", "`#[expect(…, reason = …)]` goes away when it is no longer needed"),
];

/// Returns whether a file contains unit tests. Such a file needs no header, because the tested file has one.
fn is_unit_test(source: &Source) -> bool {
    source.role == Role::Test && source.path.starts_with("src/")
}

#[track_caller]
fn check(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn restricted_apis_are_used_only_where_allowed() {
    let mut wrong = Vec::new();
    for source in products() {
        let code = source.code();
        for owner in OWNERS.iter().filter(|owner| !owner.places.iter().any(|place| source.path.starts_with(place))) {
            for word in owner.words {
                wrong.extend(
                    lines_with(&code, word).iter().map(|line| format!("{}:{line}: `{word}`: {}", source.path, owner.why)),
                );
            }
        }
    }
    check(&wrong);
}

#[test]
fn pure_modules_use_no_io_clock_or_randomness() {
    let mut wrong = Vec::new();
    for source in products() {
        let code = source.code();
        let held = PURE.iter().filter(|pure| {
            source.path.starts_with(pure.place) && (pure.except.is_empty() || !source.path.starts_with(pure.except))
        });
        for word in held.flat_map(|pure| pure.never) {
            let lines = lines_with(&code, word);
            wrong.extend(lines.iter().map(|line| format!("{}:{line}: `{word}` in a place that must be pure", source.path)));
        }
    }
    check(&wrong);
}

/// File that listens for the proxy in the network namespace of a sandboxed command. No other process can reach the
/// socket.
const BINDS: &str = "src/sys/process/handshake.rs";
/// Files that pass on and serve the socket of the proxy.
const SERVES: &[&str] = &["src/sys/process/run.rs", "src/sys/proxy/mod.rs"];

/// File that listens on 127.0.0.1 for the redirect of a sign-in that the user requested, and accepts one request with a
/// secret.
const LANDS: &str = "src/sys/oauth_callback.rs";
/// File that listens for clients of `aye serve` on a Unix socket. Only this user can access the socket, and web pages
/// cannot.
const LOCAL: &str = "src/sys/socket.rs";

/// Web pages and other users can reach a listening socket.
#[test]
fn cve_2025_52882_only_listed_files_open_listening_sockets() {
    let mut wrong = Vec::new();
    for source in products() {
        let code = source.code();
        let binds = lines_with(&code, "TcpListener::bind");
        if [BINDS, LANDS].contains(&source.path.as_str()) && binds.len() == 1
            || SERVES.contains(&source.path.as_str()) && binds.is_empty()
        {
            continue;
        }
        for word in ["TcpListener", "UnixListener", "UdpSocket", "UnixDatagram", "TcpSocket"] {
            if source.path == LOCAL && word == "UnixListener" {
                continue;
            }
            wrong.extend(lines_with(&code, word).iter().map(|line| format!("{}:{line}: `{word}`", source.path)));
        }
    }
    check(&wrong);
}

#[test]
fn product_code_contains_no_unwrap_panic_todo_or_allow() {
    let mut wrong = Vec::new();
    for source in products() {
        let code = source.code();
        for (word, why) in NEVER {
            wrong.extend(lines_with(&code, word).iter().map(|line| format!("{}:{line}: `{word}`: {why}", source.path)));
        }
    }
    check(&wrong);
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let headless = |source: &&Source| !source.text.starts_with("//! ") && !is_unit_test(source);
    let all = sources("src").into_iter().chain(sources("tests")).collect::<Vec<_>>();
    let wrong: Vec<_> =
        all.iter().filter(headless).map(|source| format!("{}: the first line is no `//! ` sentence", source.path)).collect();
    check(&wrong);
}

#[test]
fn file_names_contain_no_filler_words() {
    let empty = ["utils", "util", "helpers", "helper", "common", "misc", "manager"];
    let says_nothing = |source: &&Source| {
        source.path.trim_end_matches(".rs").split('/').any(|part| part.split('_').any(|word| empty.contains(&word)))
    };
    let all = sources("src").into_iter().chain(sources("tests")).collect::<Vec<_>>();
    let wrong: Vec<_> =
        all.iter().filter(says_nothing).map(|source| format!("{}: a name that says nothing", source.path)).collect();
    check(&wrong);
}
