//! A first, small filter of system calls: only their numbers, by binary search.
//! The programs behind it decide the same and more; but the kernel tries each of
//! some 450 calls on a program when it takes it, and after this one it tries the
//! long ones only on the calls this one lets through. That is a fifth of a
//! millisecond of each fork.

use seccompiler::{BpfProgram, sock_filter};

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where the kernel puts the call's number and the architecture.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

/// A program that lets these calls through and kills for any other.
pub(super) fn program(calls: impl IntoIterator<Item = i64>) -> Result<BpfProgram, String> {
    let number = |call| u32::try_from(call).map_err(|_| format!("{call} is no system call"));
    let mut numbers = calls.into_iter().map(number).collect::<Result<Vec<_>, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    // Where what lets through and what kills begin, in turn.
    let mut spans = vec![(0, libc::SECCOMP_RET_KILL_PROCESS)];
    for number in numbers {
        if spans.last().is_some_and(|(start, _)| *start == number) {
            spans.pop();
        }
        if spans.last().is_none_or(|(_, answer)| *answer != libc::SECCOMP_RET_ALLOW) {
            spans.push((number, libc::SECCOMP_RET_ALLOW));
        }
        spans.push((number + 1, libc::SECCOMP_RET_KILL_PROCESS));
    }
    let mut program = vec![
        step(LOAD, 0, 0, ARCHITECTURE),
        step(EQUAL, 1, 0, OURS),
        step(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, 0, 0, NUMBER),
    ];
    program.extend(search(&spans)?);
    Ok(program)
}

fn search(spans: &[(u32, u32)]) -> Result<BpfProgram, String> {
    if let [(_, answer)] = spans {
        return Ok(vec![step(RETURN, 0, 0, *answer)]);
    }
    let (low, high) = spans.split_at(spans.len() / 2);
    let (low, high) = (search(low)?, (high.first().map_or(0, |(start, _)| *start), search(high)?));
    let over = u8::try_from(low.len()).map_err(|_| "too many system calls".to_owned())?;
    let mut program = vec![step(AT_LEAST, over, 0, high.0)];
    program.extend(low);
    program.extend(high.1);
    Ok(program)
}

fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What the kernel would answer, or how many steps it took too many.
    fn answer(program: &[sock_filter], architecture: u32, number: u32) -> u32 {
        let (mut at, mut held) = (0, 0);
        for _ in 0..40 {
            let sock_filter { code, jt, jf, k } = program[at];
            let jump = |taken| if taken { usize::from(jt) } else { usize::from(jf) };
            at += 1;
            match code {
                LOAD => held = if k == NUMBER { number } else { architecture },
                EQUAL => at += jump(held == k),
                AT_LEAST => at += jump(held >= k),
                RETURN => return k,
                other => panic!("{other:#x}"),
            }
        }
        panic!("{number} takes more than 40 steps");
    }

    #[test]
    fn only_what_is_listed_passes_and_soon() {
        let lists: [&[i64]; 5] = [
            &[],
            &[0],
            &[0, 1, 2, 3, 5, 8, 9, 10, 11, 59, 60, 231, 318, 439],
            &[7, 7, 9],
            &(0..450).step_by(2).collect::<Vec<_>>()[..100],
        ];
        for list in lists {
            let program = program(list.iter().copied()).unwrap();
            let listed: BTreeSet<u32> = list.iter().map(|call| *call as u32).collect();
            let high = [0x3fff_ffff, 0x4000_0000, 0x4000_0001, u32::MAX];
            for number in (0..1_000).chain(high) {
                let wanted = match listed.contains(&number) {
                    true => libc::SECCOMP_RET_ALLOW,
                    false => libc::SECCOMP_RET_KILL_PROCESS,
                };
                assert_eq!(answer(&program, OURS, number), wanted, "{number} of {list:?}");
                let other = answer(&program, OURS ^ 1, number);
                assert_eq!(other, libc::SECCOMP_RET_KILL_PROCESS);
            }
        }
        assert!(program([-1]).is_err());
        assert!(program((0..4_000).step_by(2)).is_err(), "a jump is at most 255 steps");
    }
}
