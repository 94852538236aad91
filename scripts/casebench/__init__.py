"""The parts of paritybench: finding cases, recording them, judging the answers, printing."""
