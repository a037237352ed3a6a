"""What algorithms and engines share: facts, rules in numbers, the operator Π[Ip, In : Δp, Δn]."""
