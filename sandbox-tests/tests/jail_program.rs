//! Foreign programs in the jail: what they can see, reach, use and say, tried
//! with the machine's own shell and tools, which do not know that they are
//! jailed.
#![allow(clippy::unwrap_used)]

use cambium_jail::{
    Jail, JailConfig, Kept, Program, ProgramEnd, ProgramError, ProgramLimits, Shown,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn jail() -> Jail {
    let exe = Some(PathBuf::from(env!("CARGO_BIN_EXE_stub")));
    Jail::start(JailConfig { exe, ..JailConfig::default() }).unwrap()
}

/// A shell script on the machine's own programs and nothing else.
fn shell(script: &str) -> Program {
    let shown = |path: &str| Shown { from: path.into(), at: path.into() };
    Program {
        exe: "/usr/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        environment: vec![("PATH".into(), "/usr/bin".into())],
        shown: vec![shown("/usr/bin"), shown("/usr/lib")],
        links: [("/lib", "usr/lib"), ("/lib64", "usr/lib64"), ("/bin", "usr/bin")]
            .map(|(at, to)| (at.into(), to.into()))
            .to_vec(),
        files: vec![("/given/text".into(), b"given".to_vec())],
        scratch: "/work".into(),
        seeds: Vec::new(),
        limits: ProgramLimits { wall: Duration::from_secs(10), ..ProgramLimits::default() },
    }
    .with_loader()
}

trait WithLoader {
    fn with_loader(self) -> Self;
}

impl WithLoader for Program {
    /// The dynamic loader's folder, where it is one of its own.
    fn with_loader(mut self) -> Self {
        if std::path::Path::new("/usr/lib64").exists() {
            self.shown.push(Shown { from: "/usr/lib64".into(), at: "/usr/lib64".into() });
        }
        self
    }
}

async fn run(script: &str) -> ProgramEnd {
    let jail = jail();
    let end = jail.program(&shell(script), b"from stdin").await.unwrap();
    jail.shutdown().await;
    end
}

async fn said(script: &str) -> String {
    let end = run(script).await;
    let (out, err) = (String::from_utf8_lossy(&end.stdout), String::from_utf8_lossy(&end.stderr));
    format!("{out}{err}").trim().to_owned()
}

#[tokio::test]
async fn a_program_reads_what_it_is_given_and_writes_only_to_its_scratch() {
    assert_eq!(
        said("cat; echo; cat /given/text; echo x > a && cat a; pwd").await,
        "from stdin\ngivenx\n/work"
    );
    assert_eq!(said("ls / | tr '\\n' ' '").await, "bin dev given lib lib64 usr work");
    assert_eq!(
        said("ls -A /work /dev | tr '\\n' ' '").await,
        "/dev: null random urandom zero  /work:"
    );
    for place in ["/x", "/given/text", "/given/x", "/usr/bin/x", "/dev/x", "/usr/lib/x"] {
        let text = said(&format!("echo x > {place}")).await;
        assert!(text.contains("ermission denied") || text.contains("Read-only"), "{place}: {text}");
    }
    for place in ["/etc/passwd", "/proc/self/status", "/root", "/home", "/sys", "/tmp"] {
        let text = said(&format!("ls {place}")).await;
        assert!(text.contains("No such file"), "{place}: {text}");
    }
    assert_eq!(run("exit 7").await.code, 7);
    assert_eq!(run("kill -TERM $$").await.code, 128 + 15);
}

#[tokio::test]
async fn a_program_is_nobody_without_rights() {
    assert_eq!(said("id -u; id -g; id -G").await, "65534\n65534\n65534");
    let rights = "perl -e 'open(F, \"<\", \"/dev/null\") or die; $) = 0; $> = 0; print \"$> $)\"'";
    assert_eq!(said(rights).await, "65534 65534", "it became another");
    assert_eq!(
        said("echo $$; env | grep -v '^_=' | sort | tr '\\n' ' '").await,
        "2\nPATH=/usr/bin PWD=/work"
    );
}

#[tokio::test]
async fn a_program_makes_no_socket_namespace_or_mount() {
    for (script, refused) in [
        ("unshare -U true", "Operation not permitted"),
        ("unshare -n true", "Operation not permitted"),
        ("mount -t tmpfs none /work", "superuser"),
        ("perl -e 'chroot(\"/work\") or die \"$!\\n\"'", "Operation not permitted"),
        ("mknod /work/d c 1 3", "not permitted"),
        (
            "perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,0) or die \"$!\\n\"'",
            "Operation not permitted",
        ),
        (
            "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0) or die \"$!\\n\"'",
            "Operation not permitted",
        ),
    ] {
        let end = run(script).await;
        let text = String::from_utf8_lossy(&end.stderr).into_owned();
        assert_ne!(end.code, 0, "{script}: {text}");
        assert!(text.contains(refused), "{script}: {text}");
    }
    // Not even its own memory through a file.
    assert!(said("cat /proc/1/maps").await.contains("No such file"));
}

#[tokio::test]
async fn a_program_makes_no_memory_that_its_limit_does_not_count() {
    let map =
        |flags: u32, from: &str| format!("{}, 0, 4096, 3, {flags}, {from}, 0", libc::SYS_mmap);
    let tried = |call: &str| {
        format!(
            "perl -e 'open(F, \"+>\", \"f\") or die; truncate(F, 8192); my $n = \"n\"; \
             print(syscall({call}) == -1 ? $! + 0 : \"made\")'"
        )
    };
    // MAP_PRIVATE and MAP_ANONYMOUS, and a file's.
    for counted in [map(0x22, "-1"), map(0x2, "fileno(F)")] {
        assert_eq!(said(&tried(&counted)).await, "made", "{counted}");
    }
    for uncounted in [
        map(0x21, "-1"),
        map(0x23, "-1"),
        map(0x1, "fileno(F)"),
        map(0x3, "fileno(F)"),
        map(0x122, "-1"),
        format!("{}, $n, 0", libc::SYS_memfd_create),
        format!("{}, 0, 4096, 0x3b6", libc::SYS_shmget),
        format!("{}, 0, 4096, 0, 0, 0", libc::SYS_remap_file_pages),
    ] {
        assert_eq!(said(&tried(&uncounted)).await, "1", "{uncounted}: EPERM");
    }
}

#[tokio::test]
async fn a_program_is_taken_first_when_memory_runs_out() {
    let jail = jail();
    let program = shell("sleep 9.0625");
    let run = jail.program(&program, b"");
    let score = async {
        loop {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let ours = processes.map(|process| process.path()).find(|process| {
                std::fs::read(process.join("cmdline"))
                    .is_ok_and(|line| line == b"sleep\x009.0625\0")
            });
            if let Some(process) = ours {
                return std::fs::read_to_string(process.join("oom_score_adj")).unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    let score = tokio::select! {
        score = score => score,
        end = run => panic!("it was not seen: {end:?}"),
    };
    assert_eq!(score.trim(), "1000");
    jail.shutdown().await;
}

#[tokio::test]
async fn limits_end_a_program_and_all_its_children() {
    let jail = jail();
    let limited = |script: &str, limits: ProgramLimits| Program { limits, ..shell(script) };
    let second = ProgramLimits { wall: Duration::from_secs(1), ..ProgramLimits::default() };
    let started = Instant::now();
    let scripts =
        ["while :; do :; done", "sleep 100 & sleep 100 & wait", "trap '' TERM HUP INT; sleep 100"];
    for script in scripts {
        let end = jail.program(&limited(script, second.clone()), b"").await;
        assert_eq!(end, Err(ProgramError::Timeout(Duration::from_secs(1))), "{script}");
    }
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    let small = ProgramLimits { output_bytes: 1000, ..ProgramLimits::default() };
    let end = jail.program(&limited("while :; do echo endless; done", small), b"").await;
    assert_eq!(end, Err(ProgramError::Output(1000)));
    let cpu = ProgramLimits { cpu_seconds: 1, ..ProgramLimits::default() };
    let end = jail.program(&limited("while :; do :; done", cpu), b"").await.unwrap();
    assert_eq!(end.code, 128 + 9, "SIGKILL");
    let few = ProgramLimits { processes: 4, ..ProgramLimits::default() };
    let end = jail
        .program(&limited("for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait", few), b"")
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&end.stderr).contains("ork"), "{end:?}");
    let little = ProgramLimits { scratch_bytes: 1 << 20, ..ProgramLimits::default() };
    let end = jail
        .program(
            &limited("for i in 1 2 3; do head -c 600000 /dev/zero > $i || exit 9; done", little),
            b"",
        )
        .await
        .unwrap();
    assert_eq!(end.code, 9, "{end:?}");
    let memory = ProgramLimits { data_bytes: 64 << 20, ..ProgramLimits::default() };
    let end =
        jail.program(&limited("perl -e '$x = \"a\" x 200_000_000'", memory), b"").await.unwrap();
    assert_ne!(end.code, 0);
    // What was left in the background ended with its program.
    let end = jail
        .program(&shell("(trap '' HUP; sleep 100 >/dev/null 2>&1 </dev/null &) ; echo done"), b"")
        .await
        .unwrap();
    assert_eq!(end.stdout, b"done\n");
    jail.shutdown().await;
    let left = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap());
    assert_eq!(left.collect::<String>(), "", "children are left");
}

/// A shell script over files of an agent's, which come back.
fn kept(script: &str, seeds: &[(&str, &str)]) -> Program {
    let seeds = seeds.iter().map(|(path, text)| (path.into(), text.as_bytes().to_vec())).collect();
    let limits = ProgramLimits {
        wall: Duration::from_secs(10),
        kept_files: 20,
        kept_bytes: 100_000,
        ..ProgramLimits::default()
    };
    Program { seeds, limits, ..shell(script) }
}

async fn ended(script: &str, seeds: &[(&str, &str)]) -> Kept {
    let jail = jail();
    let end = jail.program(&kept(script, seeds), b"").await.unwrap();
    jail.shutdown().await;
    assert_eq!(end.code, 0, "{}", String::from_utf8_lossy(&end.stderr));
    end.kept
}

fn texts(kept: &Kept) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let files = kept.files.iter();
    files.map(|(path, bytes)| (path.display().to_string(), text(bytes))).collect()
}

async fn left(script: &str, seeds: &[(&str, &str)]) -> (Vec<(String, String)>, bool) {
    let kept = ended(script, seeds).await;
    (texts(&kept), kept.cut)
}

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn what_lies_in_the_working_directory_is_there_may_be_changed_and_comes_back() {
    let seeds = [("a.ts", "one"), ("tools/b.ts", "two"), ("gone", "x")];
    let script =
        "cat a.ts tools/b.ts >c; rm gone; echo -n three >a.ts; mkdir -p d/e; echo -n y >d/e/f";
    let kept = ended(script, &seeds).await;
    // What is as it was given is no news.
    assert_eq!(texts(&kept), pairs(&[("a.ts", "three"), ("c", "onetwo"), ("d/e/f", "y")]));
    assert_eq!(kept.gone, paths(&["gone"]));
    assert_eq!((kept.unplaced, kept.cut), (Vec::new(), false));
}

#[tokio::test]
async fn what_was_given_comes_back_ahead_of_litter() {
    let litter = "for i in $(seq 1 40); do echo $i > 0$i; done; echo -n edited > z/edited";
    let seeds = [("z/edited", "x"), ("z/same", "y")];
    let (files, cut) = left(litter, &seeds).await;
    assert!(files.contains(&("z/edited".into(), "edited".into())), "{files:?}");
    assert_eq!((files.len(), cut), (20, true));
    // Files as they were given take no room.
    let many: Vec<_> = (0..40).map(|number| format!("f{number}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), "same")).collect();
    let (files, cut) = left("echo -n new > new; echo -n other > f7", &many).await;
    assert_eq!((files, cut), (pairs(&[("f7", "other"), ("new", "new")]), false));
}

#[tokio::test]
async fn a_given_file_is_gone_where_it_is_no_file_and_stays_where_that_cannot_be_seen() {
    let seeds = [("a", "1"), ("b/c", "2"), ("d/e", "3"), ("f", "4"), ("g/h", "5")];
    let script = "rm a; mkdir a; echo -n x > a/b; rm -r b; echo -n y > b
        mv d d2; ln -s d2 d; rm f; ln -s /usr/bin/sh f; chmod 000 g";
    let kept = ended(script, &seeds).await;
    assert_eq!(texts(&kept), pairs(&[("a/b", "x"), ("b", "y"), ("d2/e", "3")]));
    assert_eq!(kept.gone, paths(&["a", "b/c", "d/e"]));
    assert!(kept.cut);
}

#[tokio::test]
async fn a_given_file_without_a_place_is_left_out_and_named() {
    let kept = ended("cat a; echo -n new > a", &[("a", "1"), ("a/b", "2"), ("c", "3")]).await;
    assert_eq!(texts(&kept), pairs(&[("a", "new")]));
    assert_eq!((kept.gone, kept.unplaced), (Vec::new(), paths(&["a/b"])));
    let kept = ended("rm a", &[("a", "1"), ("a/b", "2")]).await;
    assert_eq!((kept.gone, kept.unplaced), (paths(&["a"]), paths(&["a/b"])));
}

#[tokio::test]
async fn what_leads_out_of_the_working_directory_never_comes_back() {
    for script in [
        "ln -s /usr/bin/sh sh",
        "ln -s ../usr/lib lib; ln -s / root; ln -s . here",
        "echo x > closed; chmod 000 closed",
        "mkdir closed; echo x > closed/in; chmod 000 closed",
        "mkdir -p 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17; echo x > 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/f",
        "head -c 100001 /dev/zero > long",
    ] {
        let (files, cut) = left(&format!("{script}; echo -n good > good"), &[]).await;
        assert_eq!(files, pairs(&[("good", "good")]), "{script}");
        assert!(cut, "{script}");
    }
    let (files, cut) = left("for i in $(seq 1 30); do echo $i > $i; done", &[]).await;
    assert_eq!((files.len(), cut), (20, true));
    // Neither a pipe nor a second name for a file of the system can be made.
    let (files, cut) = left("mkfifo pipe 2>/dev/null || true", &[]).await;
    assert_eq!((files, cut), (pairs(&[]), false));
    let (files, _) = left("ln /usr/bin/sh sh 2>/dev/null || true", &[]).await;
    assert_eq!(files, pairs(&[]));
    for place in ["../x", "/x", "a/../../x", ""] {
        let jail = jail();
        let error = jail.program(&kept("true", &[(place, "x")]), b"").await.unwrap_err();
        jail.shutdown().await;
        assert!(matches!(&error, ProgramError::Unavailable(_)), "{place}: {error}");
    }
}

#[tokio::test]
async fn an_orphan_is_over_before_its_files_are_read() {
    let script = "(trap '' HUP TERM; while :; do echo more >> log; done) >/dev/null 2>&1 &
        (setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 &)
        echo -n kept > file";
    let started = Instant::now();
    let (files, _) = left(script, &[]).await;
    assert!(files.contains(&("file".into(), "kept".into())), "{files:?}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_flood_of_output_is_cut_and_an_endless_one_ended() {
    let jail = jail();
    let limits = ProgramLimits {
        output_bytes: 1000,
        dropped_bytes: 1 << 20,
        wall: Duration::from_secs(20),
        ..ProgramLimits::default()
    };
    let run = |script: &str| Program { limits: limits.clone(), ..shell(script) };
    let end =
        jail.program(&run("head -c 500000 /dev/zero; echo no >&2; exit 3"), b"").await.unwrap();
    assert_eq!((end.code, end.stdout.len(), end.stdout_cut), (3, 1000, true));
    assert_eq!((end.stderr.as_slice(), end.stderr_cut), (b"no\n".as_slice(), false));
    let exact = jail.program(&run("head -c 1000 /dev/zero"), b"").await.unwrap();
    assert_eq!((exact.stdout.len(), exact.stdout_cut), (1000, false));
    let started = Instant::now();
    let end = jail.program(&run("while :; do echo endless; echo endless >&2; done"), b"").await;
    assert_eq!(end, Err(ProgramError::Output(1000)));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    jail.shutdown().await;
}

#[tokio::test]
async fn a_fork_bomb_stays_small_and_ends_with_its_time_and_so_does_what_is_given_up() {
    let jail = jail();
    let limits =
        ProgramLimits { wall: Duration::from_secs(2), processes: 16, ..ProgramLimits::default() };
    let bomb = Program { limits, ..shell("b() { b | b & b; }; b 2>/dev/null") };
    let end = jail.program(&bomb, b"").await;
    // It may also have ended itself, once nothing could be forked any more.
    assert!(matches!(end, Err(ProgramError::Timeout(_)) | Ok(ProgramEnd { .. })), "{end:?}");
    let long = shell("echo started; sleep 1000 & sleep 1000");
    let run = jail.program(&long, b"");
    assert!(tokio::time::timeout(Duration::from_millis(300), run).await.is_err());
    jail.shutdown().await;
    let left = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap());
    assert_eq!(left.collect::<String>(), "", "children are left");
}

#[tokio::test]
async fn what_lies_where_the_tree_is_usually_made_is_shown_too() {
    let folder = std::env::temp_dir().join(format!("cambium-shown-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("text"), "shown").unwrap();
    let mut program = shell("cat /shown/text; ls /; echo x > /shown/text");
    program.shown.push(Shown { from: folder.clone(), at: "/shown".into() });
    let jail = jail();
    let end = jail.program(&program, b"").await;
    jail.shutdown().await;
    let kept = std::fs::read_to_string(folder.join("text"));
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8(end.unwrap().stdout).unwrap();
    assert_eq!(text.replace('\n', " "), "shownbin dev given lib lib64 shown usr work ");
    assert_eq!(kept.unwrap(), "shown");
}

#[tokio::test]
async fn what_cannot_be_shown_or_run_is_named() {
    let jail = jail();
    let mut missing = shell("true");
    missing.shown.push(Shown { from: "/nowhere".into(), at: "/nowhere".into() });
    let error = jail.program(&missing, b"").await.unwrap_err();
    assert!(
        matches!(&error, ProgramError::Unavailable(why) if why.contains("/nowhere")),
        "{error}"
    );
    let none = Program { exe: "/usr/bin/nothing".into(), ..shell("") };
    let error = jail.program(&none, b"").await.unwrap_err();
    assert!(
        matches!(&error, ProgramError::Unavailable(why) if why.contains("/usr/bin/nothing")),
        "{error}"
    );
    for path in ["relative", "/given/../../x", "/"] {
        let mut outside = shell("true");
        outside.files.push((path.into(), Vec::new()));
        let error = jail.program(&outside, b"").await.unwrap_err();
        assert!(matches!(&error, ProgramError::Unavailable(_)), "{path}: {error}");
    }
    jail.shutdown().await;
}
