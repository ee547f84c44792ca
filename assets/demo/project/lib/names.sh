# join_names NAME...   prints `A`, `A and B`, `A, B and C`
join_names() {
  local last="${*: -1}" rest=("${@:1:$#-1}") text="" name
  for name in "${rest[@]}"; do
    text+="${text:+, }$name"
  done
  echo "${text:+$text and }$last"
}
