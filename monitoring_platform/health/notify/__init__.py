"""Who is told what, when and where: messages, their plan, their delivery."""
