//! What holds of the rule for any set, limits and instant.
#![allow(clippy::unwrap_used)]

use cambium_engine::{Member, MoveCause, SetLimits, ToolName, plan};
use proptest::prelude::*;

const DAY: i64 = 24 * 60 * 60 * 1000;

fn members() -> impl Strategy<Value = Vec<Member>> {
    // Few distinct days, so that ties and exact windows are common.
    let moment = (0..40i64, -1..=1i64).prop_map(|(day, jitter)| day * DAY + jitter);
    let row = (moment.clone(), proptest::option::of(moment));
    proptest::collection::vec(row, 0..30).prop_map(|rows| {
        rows.into_iter()
            .enumerate()
            .map(|(at, (promoted_ms, last_used_ms))| Member {
                tool: ToolName::new("v", &format!("t{at}")).unwrap(),
                promoted_ms,
                last_used_ms,
            })
            .collect()
    })
}

fn limits() -> impl Strategy<Value = SetLimits> {
    (1..25u32, 1..30u32).prop_map(|(cap, days)| SetLimits::new(cap, days).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn b076_idempotent_at_one_instant(set in members(), limits in limits(), now in 20..45i64) {
        let now = now * DAY;
        let out = plan(&set, limits, now, false);
        let rest: Vec<Member> =
            set.iter().filter(|m| out.iter().all(|d| d.tool != m.tool)).cloned().collect();
        prop_assert_eq!(out.len() + rest.len(), set.len(), "each demotion names one member once");
        prop_assert_eq!(plan(&rest, limits, now, false), vec![]);
    }

    #[test]
    fn b072_cap_never_takes_a_used_tool_nor_more_than_the_excess(
        set in members(), limits in limits(), now in 20..45i64,
    ) {
        let now = now * DAY;
        let window = i64::from(limits.idle_days()) * DAY;
        let out = plan(&set, limits, now, false);
        let of = |cause| out.iter().filter(move |d| d.cause == cause);
        let after_idle = set.len() - of(MoveCause::Idle).count();
        let excess = after_idle.saturating_sub(limits.cap() as usize);
        prop_assert!(of(MoveCause::Cap).count() <= excess);
        for demotion in &out {
            let member = set.iter().find(|m| m.tool == demotion.tool).unwrap();
            let used_inside = member.last_used_ms.is_some_and(|used| now - used <= window);
            let promoted_inside = now - member.promoted_ms <= window;
            match demotion.cause {
                MoveCause::Cap => prop_assert!(!used_inside && promoted_inside),
                MoveCause::Idle => prop_assert!(!used_inside && !promoted_inside),
                other => prop_assert!(false, "{:?} is not the rule's", other),
            }
        }
        // What stays over the cap is used inside the window, all of it.
        let stays: Vec<&Member> =
            set.iter().filter(|m| out.iter().all(|d| d.tool != m.tool)).collect();
        if stays.len() > limits.cap() as usize {
            prop_assert!(stays.iter().all(|m| m.last_used_ms.is_some_and(|u| now - u <= window)));
        }
    }

    #[test]
    fn b072_cap_goes_by_oldest_promotion_then_wire_name(
        set in members(), limits in limits(), now in 20..45i64,
    ) {
        let out = plan(&set, limits, now * DAY, false);
        let order: Vec<(i64, String)> = out.iter().filter(|d| d.cause == MoveCause::Cap)
            .map(|d| {
                let member = set.iter().find(|m| m.tool == d.tool).unwrap();
                (member.promoted_ms, member.tool.to_string())
            })
            .collect();
        prop_assert!(order.is_sorted());
    }

    #[test]
    fn b071_idle_is_exactly_older_than_the_window(
        set in members(), limits in limits(), now in 20..45i64,
    ) {
        let now = now * DAY;
        let window = i64::from(limits.idle_days()) * DAY;
        let out = plan(&set, limits, now, false);
        for member in &set {
            let clock = member.last_used_ms.unwrap_or(member.promoted_ms).max(member.promoted_ms);
            let idle = out.iter().any(|d| d.tool == member.tool && d.cause == MoveCause::Idle);
            prop_assert_eq!(idle, now - clock > window);
        }
    }

    #[test]
    fn b074_in_flight_plans_nothing(set in members(), limits in limits(), now in 0..90i64) {
        prop_assert_eq!(plan(&set, limits, now * DAY, true), vec![]);
    }
}
