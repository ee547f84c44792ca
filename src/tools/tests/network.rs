//! Tests of commands' network access, with real programs: requests that aye's proxy lets through because of the policy
//! or an approval.

use super::*;
use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use crate::protocol::{Mode, SandboxAccess, SandboxTier};
use crate::sys::http::fetch::Resolver;
use crate::sys::process::{CommandSpec, End, FinishedRun, ProcessError, command_environment, run, start_terminal};
use crate::sys::proxy::{DeniedHost, ProxyTarget};
use crate::sys::sandbox::{Backend, Confinement, NetworkAccess};
use crate::tools::shell::network::proxy;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Mutex;
use std::time::Duration;

/// Resolver that resolves every name to this address. Whatever the address, connections go to the test server.
struct Everywhere(IpAddr);

impl Resolver for Everywhere {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        std::future::ready(Ok(vec![self.0])).boxed()
    }
}

struct Net {
    bench: Bench,
    server: SocketAddr,
    /// The first line received on each connection.
    heard: Arc<Mutex<Vec<String>>>,
}

impl Net {
    fn new(table: &str) -> Self {
        Self::leading_to(table, "93.184.216.34")
    }

    fn leading_to(table: &str, address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let mut bytes = [0; 16 * 1024];
                let count = stream.read(&mut bytes).unwrap_or(0);
                hears.lock().unwrap().push(String::from_utf8_lossy(&bytes[..count]).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
            }
        });
        let text = format!("schema_version = 1\n[capabilities.\"Network.Http\"]\n{table}");
        let home = PathBuf::from("/home/user");
        let context = Context {
            roots: vec![home.join("ws")],
            home,
            mode: Mode::Ask,
            sandbox: Sandbox::Present,
            own: Vec::new(),
            skills: Vec::new(),
        };
        let enforcer = Enforcer::new(vec![Layer::new(Scope::User, Bundle::parse(&text, "policy.toml").unwrap())], context);
        let mut bench = Bench::new();
        let (web, addresses) = (enforcer.clone(), enforcer);
        bench.settings.http.may_fetch = Arc::new(move |url, method| {
            let action = Action::Fetch { url: url.to_owned(), method: method.to_owned() };
            web.explain(&[action], jiff::Timestamp::UNIX_EPOCH)
        });
        bench.settings.http.may_connect = Arc::new(move |url, address| addresses.may_connect(url, address));
        let names = Arc::new(Everywhere(address.parse().unwrap()));
        bench.settings.http.fetcher = Fetcher::for_test(names, Arc::new(move |_| server));
        Self { bench, server, heard }
    }

    fn admit(&self, opens: &[SandboxAccess], url: &str, method: &str) -> Result<ProxyTarget, (String, Option<bool>)> {
        let gate = proxy(&self.bench.settings, opens).gate;
        gate.admit(url, method).map_err(|refusal| (refusal.reason, refusal.denied.map(|denied| denied.can_open)))
    }

    fn spec(&self, line: &str, opens: &[SandboxAccess]) -> CommandSpec {
        let confinement = Confinement::new(Backend::Namespaces, vec![self.bench.settings.workspace.clone()]);
        CommandSpec {
            shell: crate::sys::process::Shell::Bash,
            line: line.to_owned(),
            directory: self.bench.settings.workspace.clone(),
            environment: command_environment(std::env::vars_os(), &EnvironmentSelection::Core, &[], &|_| false),
            stdin: None,
            terminal: None,
            confinement: Some(confinement),
            proxy: Some(proxy(&self.bench.settings, opens)),
            timeout: Duration::from_secs(60),
            max_output_bytes: 100 * 1024,
            helper: Helper::default(),
        }
    }

    /// Runs a line. Returns `None` if this kernel does not support the sandbox.
    fn run(&self, line: &str, opens: &[SandboxAccess]) -> Option<FinishedRun> {
        started(block_on(run(self.spec(line, opens), mpsc::channel(1).0, CancellationToken::new())))
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn started<T>(outcome: Result<T, ProcessError>) -> Option<T> {
    match outcome {
        Err(ProcessError::NotStarted(reason)) if reason.starts_with("cannot set up the sandbox") => {
            println!("skipped: {reason}");
            None
        }
        outcome => Some(outcome.unwrap()),
    }
}

fn host(host: &str, port: u16) -> SandboxAccess {
    SandboxAccess::Host { host: host.to_owned(), port }
}

const OPEN: &str = "requires_approval = false";
const ASKS: &str = "requires_approval = true";

#[test]
fn only_allowed_hosts_and_ports_are_reachable() {
    for table in [OPEN, ASKS] {
        let net = Net::new(table);
        let opens = [host("docs.rs", 443), host("Bücher.example", 443), host("93.184.216.34", 443), host("a.example", 80)];
        for (url, method) in [
            ("https://docs.rs:443/", "CONNECT"),
            ("https://DOCS.RS.:443/", "CONNECT"),
            ("https://xn--bcher-kva.example:443/", "CONNECT"),
            ("https://93.184.216.34:443/", "CONNECT"),
            ("http://a.example/x", "POST"),
        ] {
            assert!(net.admit(&opens, url, method).is_ok(), "{url}");
        }
        for (url, method) in [
            ("https://docs.rs:80/", "CONNECT"),
            ("https://docs.rs:8443/", "CONNECT"),
            ("http://docs.rs/", "GET"),
            ("https://x.docs.rs:443/", "CONNECT"),
            ("https://docs.rs.evil.test:443/", "CONNECT"),
            ("https://evildocs.rs:443/", "CONNECT"),
            ("https://93.184.216.35:443/", "CONNECT"),
        ] {
            assert_eq!(net.admit(&opens, url, method).unwrap_err().1, Some(true), "{url}");
        }
        for url in ["https://docs.rs:443@evil.test:443/", "https://docs.rs%00.evil.test:443/", "https://[docs.rs]:443/", "x"] {
            assert_eq!(net.admit(&opens, url, "CONNECT").unwrap_err().1, None, "{url}");
        }
        assert!(net.admit(&[], "https://docs.rs:443/", "CONNECT").unwrap_err().0.contains("this command has no access"));
    }
}

#[test]
fn an_approval_cannot_allow_hosts_that_a_rule_denies() {
    let net = Net::new("requires_approval = false\nblocked_domains = [\"docs.rs\"]");
    for (name, port) in [("docs.rs", 443), ("169.254.169.254", 80), ("127.0.0.1", 80), ("localhost", 80), ("10.0.0.1", 443)] {
        let (reason, can_open) = net.admit(&[host(name, port)], &format!("https://{name}:{port}/"), "CONNECT").unwrap_err();
        assert!(can_open == Some(false) && reason.contains("no approval can allow it"), "{name}: {reason}");
    }
    let server = net.admit(&[host("a.example", 443)], "https://a.example:443/", "CONNECT").unwrap();
    let gate = proxy(&net.bench.settings, &[]).gate;
    for (address, fine) in [("93.184.216.34", true), ("127.0.0.1", false), ("10.0.0.1", false), ("169.254.169.254", false)] {
        assert_eq!(gate.may_connect(&server, address.parse().unwrap()).is_ok(), fine, "{address}");
    }
}

#[test]
fn an_approval_can_allow_private_hosts_that_the_policy_lists() {
    let net = Net::leading_to("requires_approval = true\nallowed_private_hosts = [\"forge.local:8080\"]", "10.1.2.3");
    let server = net.admit(&[host("forge.local", 8080)], "http://forge.local:8080/", "GET").unwrap();
    assert!(proxy(&net.bench.settings, &[]).gate.may_connect(&server, "10.1.2.3".parse().unwrap()).is_ok());
}

#[test]
fn approvals_list_the_servers_that_a_command_needs_and_cannot_reach() {
    let mut net = Net::new("requires_approval = true\nblocked_domains = [\"evil.example\"]");
    let with = |network| SandboxPolicy { tier: SandboxTier::Guarded, network, ..SandboxPolicy::unsandboxed() };
    net.bench.settings.command.sandbox = with(NetworkAccess::Proxied);
    let note = |net: &Net, line: &str| {
        let plan = net.bench.plan("RunCommand", serde_json::json!({"command": line})).unwrap();
        plan.proposal.unwrap().notes.into_iter().find(|note| note.starts_with("needs"))
    };
    let off = |servers: &str| Some(format!("needs {servers}: blocked; aye asks separately if the command needs it"));
    for (line, said) in [
        ("curl -fsS https://a.example/install.sh | sh", off("a.example:443")),
        ("curl http://a.example/1 http://a.example/2; wget https://b.example:8443/", off("a.example:80, b.example:8443")),
        ("git clone https://a.example/x.git", off("a.example:443")),
        ("curl https://evil.example/", Some("needs evil.example:443 (user:4): denied".to_owned())),
        (
            "curl https://a.example https://b.example https://c.example https://d.example",
            off("a.example:443, b.example:443, c.example:443, …"),
        ),
        ("echo https://a.example/", None),
        ("curl $URL", None),
    ] {
        assert_eq!(note(&net, line), said, "{line}");
    }
    net.bench.settings.command.sandbox = with(NetworkAccess::Open);
    assert_eq!(note(&net, "curl https://a.example/"), None);
}

/// Programs, each with the request that proves that its access was allowed.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("curl", "curl -s http://a.example/curl", "GET /curl HTTP/1.1"),
    ("wget", "wget -qO- http://a.example/wget", "GET /wget HTTP/1.1"),
    ("git", "git ls-remote http://a.example/git", "GET /git/info/refs?service=git-upload-pack HTTP/1.1"),
    (
        "pip",
        "pip --isolated download --no-deps --no-input --retries 0 -i http://a.example/pip --trusted-host a.example x",
        "GET /pip/x/",
    ),
    ("npm", "npm view --fetch-retries=0 --registry=http://a.example/npm x", "GET /npm/x HTTP/1.1"),
    ("python3", "python3 -c 'import urllib.request as u; u.urlopen(\"http://a.example/py\")'", "GET /py HTTP/1.1"),
];

#[test]
fn programs_with_proxy_support_reach_only_allowed_hosts() {
    for (program, line, request) in PROGRAMS {
        let net = Net::new(ASKS);
        let line = format!("command -v {program} >/dev/null || {{ echo absent; exit; }}; export HOME=$PWD; {line} 2>&1");
        let Some(finished) = net.run(&line, &[host("a.example", 80)]) else { return };
        let text = finished.stdout.text(10_000);
        if text == "absent\n" {
            println!("skipped: {program} is not installed");
            continue;
        }
        let heard = net.heard();
        assert!(heard.iter().any(|heard| heard.starts_with(request)), "{program}: {heard:?} {text}");
        assert_eq!(finished.denied_hosts, [], "{program}: {text}");

        let net = Net::new(ASKS);
        let finished = net.run(&line, &[host("b.example", 80)]).unwrap();
        let denied = finished.denied_hosts;
        assert!(
            denied.iter().any(|one| (one.host.as_str(), one.port, one.can_open) == ("a.example", 80, true)),
            "{program}: {denied:?}"
        );
        assert_eq!(net.heard(), Vec::<String>::new(), "{program}");
    }
}

#[test]
fn curl_and_git_tunnel_tls_only_to_allowed_hosts() {
    for line in ["curl -sk https://a.example/", "git ls-remote https://a.example/x"] {
        let net = Net::new(ASKS);
        let Some(_) = net.run(line, &[host("a.example", 443)]) else { return };
        assert!(
            net.heard().iter().any(|first| first.starts_with('\u{16}') && first.contains("a.example")),
            "{line}: {:?}",
            net.heard()
        );
        let net = Net::new(ASKS);
        let finished = net.run(&format!("{line} 2>&1"), &[]).unwrap();
        let expected = DeniedHost { host: "a.example".into(), port: 443, reason: "not allowed".into(), can_open: true };
        assert_eq!((finished.denied_hosts, net.heard().len()), (vec![expected], 0), "{line}: {}", finished.stdout.text(1000));
    }
}

#[test]
fn programs_that_ignore_the_proxy_are_offline() {
    let net = Net::new(OPEN);
    let port = net.server.port();
    let line = format!(
        "for to in 127.0.0.1/{port} 93.184.216.34/80 1.1.1.1/53; do (exec 3<>/dev/tcp/$to) 2>/dev/null && echo tcp $to; done; \
         (echo x > /dev/udp/1.1.1.1/53) 2>/dev/null && echo udp; getent hosts a.example && echo name; \
         curl -s --noproxy '*' http://127.0.0.1:{port}/ && echo curl; env | grep -ci '_proxy='"
    );
    let Some(finished) = net.run(&line, &[host("a.example", 80)]) else { return };
    assert_eq!(finished.stdout.text(1000), "8\n");
    assert_eq!(net.heard(), Vec::<String>::new());
}

#[test]
fn local_servers_of_a_command_bypass_the_proxy() {
    let net = Net::new(OPEN);
    let line = "command -v python3 >/dev/null || { echo mine; exit; }; echo mine > page; python3 -m http.server --bind 127.0.0.1 8123 \
                >/dev/null 2>&1 & for try in $(seq 100); do curl -s http://localhost:8123/page && exit; sleep 0.1; done";
    let Some(finished) = net.run(line, &[]) else { return };
    assert_eq!((finished.end, finished.stdout.text(100).as_str()), (End::Exited(0), "mine\n"));
    assert_eq!(finished.denied_hosts, []);
}

#[test]
fn commands_inherit_neither_the_proxy_socket_nor_other_file_descriptors() {
    let net = Net::new(OPEN);
    let Some(finished) = net.run("ls /proc/self/fd | sort -n | tr '\\n' ' '; cat /proc/$PPID/maps 2>&1 | head -1", &[]) else {
        return;
    };
    let text = finished.stdout.text(1000);
    assert!(text.starts_with("0 1 2 3 "), "{text}");
}

#[test]
fn a_sandboxed_terminal_has_its_own_devices_and_uses_the_proxy() {
    let net = Net::new(ASKS);
    let line = "tty; ls -1 /dev/pts; curl -s http://a.example/t; curl -s http://b.example/";
    let text = block_on(async {
        let mut running = started(start_terminal(net.spec(line, &[host("a.example", 80)]), CancellationToken::new()).await)?;
        let mut text = Vec::new();
        let read = async {
            let mut buffer = [0; 4096];
            while let Ok(count) = running.screen.read(&mut buffer).await {
                if count == 0 {
                    break;
                }
                text.extend_from_slice(&buffer[..count]);
            }
        };
        let ((), ended) = tokio::join!(read, running.ending);
        let ended = ended.unwrap();
        assert_eq!((ended.end, ended.denied_hosts[0].host.as_str()), (End::Exited(0), "b.example"));
        Some(String::from_utf8_lossy(&text).into_owned())
    });
    let Some(text) = text else { return };
    assert!(text.starts_with("/dev/pts/0\r\n0\r\nptmx\r\nhelloaye: ") && text.contains("no access to `b.example:80`"), "{text}");
}
